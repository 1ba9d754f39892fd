package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/labstack/echo/v4"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/compaction/lab"
	"github.com/loci-memory/loci/compaction/lab/transcript"
	"github.com/loci-memory/loci/compaction/policy"
	"github.com/loci-memory/loci/compaction/replay"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/server/rest"
)

func (s *Server) replayRoutes(a *rest.API) {
	a.For(rest.Write).Stream(huma.Operation{
		Method: http.MethodPost, Path: "/v1/lab/replays",
		Summary: "create_replay: Replay recorded sessions under policies, as a job. The answer is a 202; the status says " +
			"when the report is there. A 422 names the line of a transcript that cannot be read.",
		RequestBody: &huma.RequestBody{Required: true, Content: rest.Content[CreateReplay](a, rest.JSON)},
		Responses: map[string]*huma.Response{"202": {Description: "The replay.",
			Content: rest.Content[replay.Replay](a, rest.JSON)}},
	}, func(c echo.Context) error { return s.createReplay(a, c) }, rest.Own)
	rest.Get(a.For(rest.Read), "/v1/lab/replays", "list_replays: List replays, the newest first.", s.listReplays, rest.Own)
	rest.Get(a.For(rest.Read), "/v1/lab/replays/{replay_id}", "get_replay: Get how far a replay is.", s.getReplay,
		rest.Own)
	for path, page := range map[string]reportForm{
		"report": {"get_replay_report: Get what a replay measured. A 409 while it runs.", rest.JSON,
			lab.Report.WriteJSON},
		"report.html": {"get_replay_page: Get what a replay measured as a page. A 409 while it runs.", "text/html",
			lab.Report.WriteHTML},
	} {
		a.For(rest.Read).Stream(huma.Operation{
			Method: http.MethodGet, Path: "/v1/lab/replays/{replay_id}/" + path, Summary: page.doc,
			Parameters: []*huma.Param{rest.IDParam("replay_id", "replay")},
			Responses: map[string]*huma.Response{"200": {Description: "The report.",
				Content: map[string]*huma.MediaType{page.mediaType: {Schema: page.schema()}}}},
		}, func(c echo.Context) error { return s.replayReport(c, page) }, rest.Own)
	}
	rest.Delete(a.For(rest.Write), "/v1/lab/replays/{replay_id}",
		"delete_replay: Delete a replay with its sessions. One that runs ends.", s.deleteReplay, rest.Own)
}

// LabTranscript is the text of a file with recorded sessions.
type LabTranscript struct {
	Name string `json:"name" minLength:"1" maxLength:"200" doc:"Of the file, for the report."`
	Text string `json:"text" minLength:"1" doc:"What the file holds, in any of the formats of loci lab replay."`
}

// CreateReplay is a request for a replay.
type CreateReplay struct {
	Transcripts  []LabTranscript        `json:"transcripts,omitempty" maxItems:"100" doc:"Recorded sessions."`
	AgentID      rest.Opt[string]       `json:"agent_id,omitzero" doc:"Whose conversation to replay in addition."`
	Conversation rest.Opt[string]       `json:"conversation_id,omitzero" doc:"The agent's default one if absent."`
	Policies     []AnyPolicy            `json:"policies,omitempty" maxItems:"50" doc:"All that have a name if absent."`
	Windows      []int                  `json:"windows,omitempty" maxItems:"20" doc:"In tokens; 32000 without ratios."`
	Ratios       []float64              `json:"ratios,omitempty" maxItems:"20" doc:"Shares of each session, in addition."`
	Prices       rest.Opt[agent.Prices] `json:"prices,omitzero" doc:"Of a provider; absent ones are 3, 0.1 and 1.25."`
	Model        string                 `json:"model,omitempty" required:"false" doc:"That writes summaries; or rules do."`
}

func (s *Server) createReplay(a *rest.API, c echo.Context) error {
	body, warnings, err := rest.ReadJSON[CreateReplay](a, c, maxMessageBytes)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	request, err := body.request()
	if err != nil {
		return err
	}
	transcripts, err := s.recorded(ctx, body)
	if err != nil {
		return err
	}
	request.Sessions = append(request.Sessions, transcripts...)
	created, err := s.Replays.Create(ctx, rest.Org(ctx), request)
	if err != nil {
		return err
	}
	return warnings.Answer(c, http.StatusAccepted, created)
}

// request returns the replay that the body describes, without the transcript of a conversation.
func (body *CreateReplay) request() (r replay.Request, err error) {
	prices := agent.DefaultPrices()
	if body.Prices.Set && !body.Prices.Null {
		prices = body.Prices.Value
	}
	r = replay.Request{Windows: body.Windows, Ratios: body.Ratios, Model: body.Model,
		Prices: policy.CachePrices{Input: prices.Input, Read: prices.Read, Write: prices.Write}}
	if len(r.Windows)+len(r.Ratios) == 0 {
		r.Windows = []int{32_000}
	}
	for i, window := range r.Windows {
		if window < lab.MinWindow || window > lab.MaxWindow {
			return r, rest.Unprocessable(fmt.Sprintf("body.windows[%d]", i),
				fmt.Sprintf("it must be from %d to %d tokens. Got: %d", lab.MinWindow, lab.MaxWindow, window))
		}
	}
	for i, ratio := range r.Ratios {
		if !(ratio > 0 && ratio <= 1) {
			return r, rest.Unprocessable(fmt.Sprintf("body.ratios[%d]", i),
				fmt.Sprintf("it must be above 0 and at most 1. Got: %v", ratio))
		}
	}
	for i, p := range body.Policies {
		if _, err := policy.Parse(json.RawMessage(p)); err != nil {
			return r, rest.Unprocessable(fmt.Sprintf("body.policies[%d]", i), err.Error())
		}
		r.Policies = append(r.Policies, json.RawMessage(p))
	}
	names := map[string]int{}
	for i, t := range body.Transcripts {
		if names[t.Name]++; names[t.Name] > 1 {
			t.Name = fmt.Sprintf("%s (%d)", t.Name, names[t.Name])
		}
		sessions, err := transcript.Read(t.Name, strings.NewReader(t.Text))
		if unread, ok := errors.AsType[*transcript.Error](err); ok {
			return r, rest.Unprocessable(fmt.Sprintf("body.transcripts[%d].text", i), unread.Error())
		} else if err != nil {
			return r, err
		}
		r.Sessions = append(r.Sessions, sessions...)
	}
	return r, nil
}

// maxReplayedBytes bounds the texts of a conversation to replay. They are in memory three times: as messages, as a
// transcript, and as stored JSON.
const maxReplayedBytes = 16 << 20

// recorded returns the conversation that a body names, as a transcript; none if the body names no conversation.
func (s *Server) recorded(ctx context.Context, body *CreateReplay) ([]transcript.Transcript, error) {
	if body.AgentID.Value == "" && body.Conversation.Value == "" {
		return nil, nil
	}
	agentID, id := rest.ConversationID(body.Conversation.Value).Of(body.AgentID.Value)
	if agentID == "" && (id == "" || id == recall.DefaultConversation) {
		return nil, rest.Unprocessable("body.agent_id", "name the agent of the conversation")
	}
	c, err := s.Recall.Conversation(ctx, rest.Org(ctx), agentID, id)
	if err != nil {
		return nil, err
	}
	if c.Messages > replay.MaxMessages {
		return nil, rest.Unprocessable("body.conversation_id", fmt.Sprintf("the conversation has %d messages; a replay may "+
			"have at most %d", c.Messages, replay.MaxMessages))
	}
	var messages []recall.Message
	size := 0
	for page, err := range s.Recall.Pages(ctx, rest.Org(ctx), c, 1, c.Messages) {
		if err != nil {
			return nil, err
		}
		for _, m := range page {
			size += len(m.Text())
		}
		if messages = append(messages, page...); size > maxReplayedBytes {
			return nil, rest.Unprocessable("body.conversation_id", "the conversation has more than 16 MiB of text, the most "+
				"that a replay may have; give the part to replay as a transcript")
		}
	}
	t := transcript.OfMessages(c.ID, messages)
	if len(t.Drafts) == 0 {
		return nil, rest.Unprocessable("body.conversation_id", "the conversation has no messages")
	}
	u, err := s.Loop.UsageIn(ctx, rest.Org(ctx), c)
	if u.Answers > 0 {
		t.Counted = &transcript.Usage{Answers: int(u.Answers), Prompt: int(u.Prompt), Read: int(u.Read), Write: int(u.Write)}
	}
	return []transcript.Transcript{t}, err
}

// OfReplay holds the path parameter of operations on a replay.
type OfReplay struct {
	ReplayID rest.ReplayID `path:"replay_id"`
}

func (s *Server) listReplays(ctx context.Context, input *struct {
	Limit int `query:"limit" minimum:"1" maximum:"100" default:"20"`
}) ([]replay.Replay, error) {
	list, err := s.Replays.Replays(ctx, rest.Org(ctx), input.Limit)
	return append([]replay.Replay{}, list...), err
}

func (s *Server) getReplay(ctx context.Context, input *OfReplay) (replay.Replay, error) {
	return s.Replays.Replay(ctx, rest.Org(ctx), string(input.ReplayID))
}

// reportForm is a file format for the report of a replay.
type reportForm struct {
	doc, mediaType string
	write          func(lab.Report, io.Writer) error
}

func (f reportForm) schema() *huma.Schema {
	if f.mediaType == rest.JSON {
		return &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true,
			Description: "sessions, and results, as loci lab replay writes them."}
	}
	return &huma.Schema{Type: huma.TypeString}
}

func (s *Server) replayReport(c echo.Context, form reportForm) error {
	id, err := rest.PathID(c, "replay_id", "replay")
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	report, err := s.Replays.Report(ctx, rest.Org(ctx), id)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	if err := form.write(report, &text); err != nil {
		return err
	}
	c.Response().Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
	return c.Blob(http.StatusOK, form.mediaType+"; charset=utf-8", text.Bytes())
}

func (s *Server) deleteReplay(ctx context.Context, input *OfReplay) (rest.Null, error) {
	return rest.Null{}, s.Replays.Delete(ctx, rest.Org(ctx), string(input.ReplayID))
}
