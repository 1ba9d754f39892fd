//go:build conformance

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The fixtures of protocol version 2026-07-28, in which answers of tools and prompts ask for input.

// askClient returns the requests for input with these names.
func askClient(names ...string) mcp.InputRequestMap {
	all := mcp.InputRequestMap{}
	for _, name := range names {
		switch name {
		case "greeting", "capital_question":
			all[name] = &mcp.CreateMessageParams{MaxTokens: 100,
				Messages: []*mcp.SamplingMessage{{Role: "user", Content: textContent("What is the capital of France?")}}}
		case "client_roots":
			all[name] = &mcp.ListRootsParams{}
		default:
			all[name] = &mcp.ElicitParams{Message: "Please answer", RequestedSchema: json.RawMessage(
				`{"type":"object","properties":{"name":{"type":"string"},"ok":{"type":"boolean"},"context":{"type":"string"}}}`)}
		}
	}
	return all
}

// given returns the client's answers as text. all is false unless the client answered each question in the right form.
func given(responses mcp.InputResponseMap, names ...string) (text string, all bool) {
	for _, name := range names {
		switch got := responses[name].(type) {
		case *mcp.ElicitResult:
			if got.Action != "accept" || len(got.Content) == 0 {
				return "", false
			}
			text += fmt.Sprint(got.Content)
		case *mcp.CreateMessageWithToolsResult:
			text += fmt.Sprint(len(got.Content))
		case *mcp.ListRootsResult:
			text += fmt.Sprint(len(got.Roots))
		default:
			return "", false
		}
	}
	return text, true
}

// rounds is a tool that asks for input in rounds. If it keeps a state, the state is the number of the round.
type rounds struct {
	asks  [][]string
	state bool
}

const round = "round "

// answer returns the tool's next requests for input, or its result.
func (t rounds) answer(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	done := 0
	if state := r.Params.RequestState; state != "" {
		if _, err := fmt.Sscanf(state, round+"%d", &done); err != nil || state != fmt.Sprint(round, done) ||
			done >= len(t.asks) {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "the request's state is not this server's"}
		}
	}
	text, all := given(r.Params.InputResponses, t.asks[done]...)
	if all {
		done++
	}
	if done == len(t.asks) {
		return &mcp.CallToolResult{Content: []mcp.Content{textContent("state-ok: " + text)}}, nil
	}
	out := &mcp.CallToolResult{InputRequests: askClient(t.asks[done]...)}
	if t.state {
		out.RequestState = fmt.Sprint(round, done)
	}
	return out, nil
}

func addInputTools(s *mcp.Server) {
	plain := json.RawMessage(`{"type":"object"}`)
	add := func(name string, handle mcp.ToolHandler) {
		s.AddTool(&mcp.Tool{Name: name, Description: name, InputSchema: plain}, handle)
	}
	for name, t := range map[string]rounds{
		"elicitation":     {asks: [][]string{{"user_name"}}},
		"sampling":        {asks: [][]string{{"capital_question"}}},
		"list_roots":      {asks: [][]string{{"client_roots"}}},
		"request_state":   {[][]string{{"confirm"}}, true},
		"tampered_state":  {[][]string{{"confirm"}}, true},
		"multiple_inputs": {[][]string{{"user_name", "greeting", "client_roots"}}, true},
		"multi_round":     {[][]string{{"step1"}, {"step2"}}, true},
	} {
		add("test_input_required_result_"+name, t.answer)
	}
	add("test_input_required_result_capabilities", asksWhatTheClientCan)
	add("test_missing_capability", needsSampling)
	add("test_streaming_elicitation", says("There are no requests in this stream."))
	add("test_logging_tool", func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		err := r.Session.Log(ctx, &mcp.LoggingMessageParams{Level: "info", Data: "called"})
		return &mcp.CallToolResult{Content: []mcp.Content{textContent("logged")}}, err
	})
	s.AddTool(&mcp.Tool{Name: "test_x_mcp_header", Description: "test_x_mcp_header", InputSchema: json.RawMessage(
		`{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"},"level":{"type":"integer"}}}`)},
		says("called"))
	s.AddPrompt(&mcp.Prompt{Name: "test_input_required_result_prompt", Description: "asks for a context"}, asksForContext)
}

func says(s string) mcp.ToolHandler {
	return func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{textContent(s)}}, nil
	}
}

// asksWhatTheClientCan asks for each kind of input that the client's capabilities include.
func asksWhatTheClientCan(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	var names []string
	if capabilities := r.ClientCapabilities(); capabilities != nil && len(r.Params.InputResponses) == 0 {
		if capabilities.Elicitation != nil {
			names = append(names, "user_name")
		}
		if capabilities.Sampling != nil {
			names = append(names, "greeting")
		}
		if capabilities.RootsV2 != nil {
			names = append(names, "client_roots")
		}
	}
	if len(names) == 0 {
		return says("nothing to ask for")(ctx, r)
	}
	return &mcp.CallToolResult{InputRequests: askClient(names...)}, nil
}

// needsSampling refuses clients that cannot sample.
func needsSampling(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	if capabilities := r.ClientCapabilities(); capabilities != nil && capabilities.Sampling != nil {
		return says("called")(ctx, r)
	}
	data, err := json.Marshal(mcp.MissingRequiredClientCapabilityData{
		RequiredCapabilities: &mcp.ClientCapabilities{Sampling: &mcp.SamplingCapabilities{}}})
	if err != nil {
		return nil, err
	}
	return nil, &jsonrpc.Error{Code: mcp.CodeMissingRequiredClientCapabilities, Message: "sampling is needed", Data: data}
}

func asksForContext(_ context.Context, r *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
	text, all := given(r.Params.InputResponses, "user_context")
	if !all {
		return &mcp.GetPromptResult{InputRequests: askClient("user_context")}, nil
	}
	return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user",
		Content: textContent("Context: " + strings.TrimSpace(text))}}}, nil
}
