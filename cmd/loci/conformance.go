//go:build conformance

package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	loci "github.com/loci-memory/loci/server/mcp"
)

// fixtures are what MCP's conformance suite expects of a server. make mcp-test builds Loci with them.
func fixtures() *loci.Fixtures {
	return &loci.Fixtures{Capabilities: &mcp.ServerCapabilities{Logging: &mcp.LoggingCapabilities{},
		Completions: &mcp.CompletionCapabilities{}, Tools: &mcp.ToolCapabilities{ListChanged: true},
		Resources: &mcp.ResourceCapabilities{ListChanged: true, Subscribe: true}, Prompts: &mcp.PromptCapabilities{}},
		Register: func(s *mcp.Server) { addTools(s); addInputTools(s); addResources(s); addPrompts(s) },
		Complete: func(context.Context, *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
			return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: []string{}}}, nil
		}}
}

var (
	image = decoded("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==")
	sound = decoded("UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=")

	picture = &mcp.ImageContent{Data: image, MIMEType: "image/png"}
)

func decoded(text string) []byte {
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		panic(err)
	}
	return raw
}

func textContent(s string) mcp.Content { return &mcp.TextContent{Text: s} }

func embedded(uri, s string) mcp.Content {
	return &mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: uri, MIMEType: "text/plain", Text: s}}
}

type handler = func(ctx context.Context, r *mcp.CallToolRequest) ([]mcp.Content, error)

func shows(all ...mcp.Content) handler {
	return func(context.Context, *mcp.CallToolRequest) ([]mcp.Content, error) { return all, nil }
}

func addTools(s *mcp.Server) {
	plain := json.RawMessage(`{"type":"object"}`)
	tools := map[string]handler{
		"test_simple_text":       shows(textContent("This is a simple text response for testing.")),
		"test_image_content":     shows(picture),
		"test_audio_content":     shows(&mcp.AudioContent{Data: sound, MIMEType: "audio/wav"}),
		"test_embedded_resource": shows(embedded("test://embedded-resource", "This is an embedded resource content.")),
		"test_multiple_content_types": shows(textContent("Multiple content types test:"), picture,
			embedded("test://mixed-content-resource", `{"test":"data"}`)),
		"test_tool_with_logging":  logs,
		"test_tool_with_progress": progresses,
		"test_error_handling": func(context.Context, *mcp.CallToolRequest) ([]mcp.Content, error) {
			return nil, errors.New("This tool intentionally returns an error for testing")
		},
		"test_sampling":                     samples,
		"test_elicitation":                  elicits(`{"username":{"type":"string","description":"User's response"}}`),
		"test_elicitation_sep1034_defaults": elicits(defaults),
		"test_elicitation_sep1330_enums":    elicits(enums),
		"json_schema_2020_12_tool":          shows(textContent("called")),
		"test_reconnection":                 reconnects,
	}
	for name, run := range tools {
		schema := plain
		if name == "json_schema_2020_12_tool" {
			schema = json.RawMessage(`{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object",
				"$defs":{"address":{"$anchor":"home","type":"object","properties":{"street":{"type":"string"},
					"city":{"type":"string"}}}},
				"properties":{"name":{"type":"string"},"address":{"$ref":"#/$defs/address"},"phone":{"type":"string"},
					"email":{"type":"string"}},
				"allOf":[{"anyOf":[{"required":["phone"]},{"required":["email"]}]}],
				"if":{"required":["name"]},"then":{"required":["phone"]},"else":{"required":["email"]},
				"additionalProperties":false}`)
		}
		s.AddTool(&mcp.Tool{Name: name, Description: name, InputSchema: schema},
			func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				content, err := run(ctx, r)
				if err != nil {
					return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{textContent(err.Error())}}, nil
				}
				return &mcp.CallToolResult{Content: content}, nil
			})
	}
}

// between is the pause between two notifications.
const between = 50 * time.Millisecond

func logs(ctx context.Context, r *mcp.CallToolRequest) ([]mcp.Content, error) {
	for _, line := range []string{"Tool execution started", "Tool processing data", "Tool execution completed"} {
		if err := r.Session.Log(ctx, &mcp.LoggingMessageParams{Level: "info", Data: line}); err != nil {
			return nil, err
		}
		time.Sleep(between)
	}
	return []mcp.Content{textContent("logged")}, nil
}

func progresses(ctx context.Context, r *mcp.CallToolRequest) ([]mcp.Content, error) {
	for _, done := range []float64{0, 50, 100} {
		if err := r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(),
			Progress: done, Total: 100}); err != nil {
			return nil, err
		}
		time.Sleep(between)
	}
	return []mcp.Content{textContent(fmt.Sprint(r.Params.GetProgressToken()))}, nil
}

func samples(ctx context.Context, r *mcp.CallToolRequest) ([]mcp.Content, error) {
	var input struct{ Prompt string }
	if err := json.Unmarshal(r.Params.Arguments, &input); err != nil {
		return nil, err
	}
	got, err := r.Session.CreateMessage(ctx, &mcp.CreateMessageParams{MaxTokens: 100,
		Messages: []*mcp.SamplingMessage{{Role: "user", Content: textContent(input.Prompt)}}})
	if err != nil {
		return nil, err
	}
	text, ok := got.Content.(*mcp.TextContent)
	if !ok {
		return nil, errors.New("the client did not answer with a text")
	}
	return []mcp.Content{textContent("LLM response: " + text.Text)}, nil
}

const (
	defaults = `{"name":{"type":"string","default":"John Doe"},"age":{"type":"integer","default":30},
		"score":{"type":"number","default":95.5},
		"status":{"type":"string","enum":["active","inactive","pending"],"default":"active"},
		"verified":{"type":"boolean","default":true}}`
	enums = `{"untitledSingle":{"type":"string","enum":["option1","option2","option3"]},
		"titledSingle":{"type":"string","oneOf":[{"const":"value1","title":"First Option"},
			{"const":"value2","title":"Second Option"},{"const":"value3","title":"Third Option"}]},
		"legacyEnum":{"type":"string","enum":["opt1","opt2","opt3"],
			"enumNames":["Option One","Option Two","Option Three"]},
		"untitledMulti":{"type":"array","minItems":1,"maxItems":3,
			"items":{"type":"string","enum":["option1","option2","option3"]}},
		"titledMulti":{"type":"array","minItems":1,"maxItems":3,"items":{"type":"string","anyOf":[
			{"const":"value1","title":"First Choice"},{"const":"value2","title":"Second Choice"},
			{"const":"value3","title":"Third Choice"}]}}}`
)

func elicits(properties string) handler {
	schema := json.RawMessage(`{"type":"object","properties":` + properties + `}`)
	return func(ctx context.Context, r *mcp.CallToolRequest) ([]mcp.Content, error) {
		got, err := r.Session.Elicit(ctx, &mcp.ElicitParams{Message: "Please answer", RequestedSchema: schema})
		if err != nil {
			return nil, err
		}
		content, err := json.Marshal(got.Content)
		return []mcp.Content{textContent(fmt.Sprintf("User response: action=%s, content=%s", got.Action, content))}, err
	}
}

func reconnects(_ context.Context, r *mcp.CallToolRequest) ([]mcp.Content, error) {
	if r.Extra == nil || r.Extra.CloseSSEStream == nil {
		return nil, errors.New("the answer is no stream")
	}
	r.Extra.CloseSSEStream(mcp.CloseSSEStreamArgs{RetryAfter: between})
	time.Sleep(2 * between)
	return []mcp.Content{textContent("Reconnection test completed")}, nil
}

func addResources(s *mcp.Server) {
	const inTemplate, data = "test://template/", "/data"
	readText := func(_ context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		c := &mcp.ResourceContents{URI: r.Params.URI, MIMEType: "text/plain", Text: "The text of " + r.Params.URI}
		if id, ok := strings.CutPrefix(r.Params.URI, inTemplate); ok {
			id = strings.TrimSuffix(id, data)
			c.MIMEType = "application/json"
			c.Text = fmt.Sprintf(`{"id":%q,"templateTest":true,"data":"Data for ID: %s"}`, id, id)
		}
		if strings.HasSuffix(r.Params.URI, "binary") {
			c.MIMEType, c.Text, c.Blob = "image/png", "", image
		}
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{c}}, nil
	}
	for name, mediaType := range map[string]string{"static-text": "text/plain", "static-binary": "image/png",
		"watched-resource": "text/plain"} {
		s.AddResource(&mcp.Resource{URI: "test://" + name, Name: name, Description: name, MIMEType: mediaType}, readText)
	}
	s.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: inTemplate + "{id}" + data, Name: "template",
		Description: "template", MIMEType: "application/json"}, readText)
}

func addPrompts(s *mcp.Server) {
	add := func(name string, content func(args map[string]string) []mcp.Content, args ...string) {
		p := &mcp.Prompt{Name: name, Description: name}
		for _, arg := range args {
			p.Arguments = append(p.Arguments, &mcp.PromptArgument{Name: arg, Description: arg, Required: true})
		}
		s.AddPrompt(p, func(_ context.Context, r *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			out := &mcp.GetPromptResult{}
			for _, c := range content(r.Params.Arguments) {
				out.Messages = append(out.Messages, &mcp.PromptMessage{Role: "user", Content: c})
			}
			return out, nil
		})
	}
	add("test_simple_prompt", func(map[string]string) []mcp.Content {
		return []mcp.Content{textContent("This is a simple prompt for testing.")}
	})
	add("test_prompt_with_arguments", func(args map[string]string) []mcp.Content {
		text := fmt.Sprintf("Prompt with arguments: arg1='%s', arg2='%s'", args["arg1"], args["arg2"])
		return []mcp.Content{textContent(text)}
	}, "arg1", "arg2")
	add("test_prompt_with_embedded_resource", func(args map[string]string) []mcp.Content {
		return []mcp.Content{embedded(args["resourceUri"], "Embedded resource content for testing."),
			textContent("Please process the embedded resource above.")}
	}, "resourceUri")
	add("test_prompt_with_image", func(map[string]string) []mcp.Content {
		return []mcp.Content{picture, textContent("Please analyze the image above.")}
	})
}
