package server

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/labstack/echo/v4"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/agent/loop"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/server/letta"
	"github.com/loci-memory/loci/server/rest"
)

func (s *Server) runRoutes(a *rest.API) {
	rest.Get(a.For(rest.Read), "/v1/runs",
		"list_runs: List the runs of agents. A run is the work on one request.", s.listRuns)
	rest.Get(a.For(rest.Read), "/v1/runs/active", "list_active_runs: List the runs that are at work.", s.activeRuns)
	rest.Get(a.For(rest.ReadAgent), "/v1/runs/{run_id}", "get_run: Get a run.", s.getRun, rest.OfUsers)
	rest.Delete(a.For(rest.Write), "/v1/runs/{run_id}",
		"delete_run: Delete the record of a run that has ended. Its messages stay.",
		s.deleteRun)
	rest.Get(a.For(rest.ReadAgent), "/v1/runs/{run_id}/messages",
		"list_run_messages: List the messages of a run.", s.runMessages, rest.OfUsers)
	rest.Get(a.For(rest.ReadAgent), "/v1/runs/{run_id}/usage",
		"get_run_usage: Get what the models of a run counted.", s.runUsage, rest.OfUsers)
	rest.Get(a.For(rest.ReadAgent), "/v1/runs/{run_id}/metrics", "get_run_metrics: Get how long a run took.",
		s.runMetrics, rest.OfUsers)
	rest.Get(a.For(rest.ReadAgent), "/v1/runs/{run_id}/steps", "list_run_steps: List the steps of a run.", s.runSteps,
		rest.OfUsers)
	rest.Get(a.For(rest.Read), "/v1/steps", "list_steps: List steps. A step is one answer of a model.", s.listSteps)
	rest.Get(a.For(rest.Read), "/v1/steps/{step_id}", "get_step: Get a step.", s.getStep)
	rest.Get(a.For(rest.Read), "/v1/steps/{step_id}/messages",
		"list_step_messages: List the messages of a step.", s.stepMessages)
	rest.Get(a.For(rest.Read), "/v1/steps/{step_id}/metrics", "get_step_metrics: Get how long a step took.", s.stepMetrics)
	rest.Patch(a.For(rest.Write), "/v1/steps/{step_id}/feedback",
		"update_step_feedback: Say whether a step was good. Null deletes it.",
		s.stepFeedback)
	rest.Get(a.For(rest.ReadAgent), "/v1/agents/{agent_id}/usage",
		"get_agent_usage: Get what models counted for an agent, by day, with what a cache had and took.", s.agentUsage)
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		doc := "stream_run: Attach to the stream of a background run again. From the item after starting_after on."
		if method == http.MethodGet {
			doc = "stream_run_from: Attach to the stream of a background run again. The parameters are in the query."
		}
		o := huma.Operation{Method: method, Path: "/v1/runs/{run_id}/stream", Summary: doc,
			Parameters: []*huma.Param{rest.IDParam("run_id", "run")}, Responses: streamed(a)}
		if method == http.MethodPost {
			o.RequestBody = &huma.RequestBody{Content: rest.Content[letta.Attach](a, rest.JSON)}
		} else {
			o.Parameters = append(o.Parameters, &huma.Param{Name: "starting_after", In: "query",
				Schema: &huma.Schema{Type: huma.TypeInteger}, Description: "The number of the last item that the client has."})
		}
		a.For(rest.ReadAgent).Stream(o, func(c echo.Context) error { return s.attachToRun(a, c) }, rest.OfUsers)
	}
	a.For(rest.ReadAgent).Stream(huma.Operation{Method: http.MethodPost,
		Path:       "/v1/conversations/{conversation_id}/stream",
		Summary:    "stream_conversation: Attach to the stream of a conversation's background run again.",
		Parameters: []*huma.Param{rest.ConversationParam()}, Responses: streamed(a),
		RequestBody: &huma.RequestBody{Content: rest.Content[letta.Attach](a, rest.JSON)},
	}, func(c echo.Context) error { return s.attachToConversation(a, c) }, rest.OfUsers)
	s.jobRoutes(a)
}

func streamed(a *rest.API) map[string]*huma.Response {
	return map[string]*huma.Response{"200": {Description: "Server-sent events: the items of the run.",
		Content: rest.Content[letta.MessageItem](a, "text/event-stream")}}
}

// jobRoutes registers the operations on runs under their older name, jobs.
func (s *Server) jobRoutes(a *rest.API) {
	rest.Get(a.For(rest.Read), "/v1/jobs", "list_jobs: List runs under their older name.", s.listJobs, rest.Deprecated)
	rest.Get(a.For(rest.Read), "/v1/jobs/active",
		"list_active_jobs: List the runs at work under their older name.", s.activeRuns,
		rest.Deprecated)
	rest.Get(a.For(rest.ReadAgent), "/v1/jobs/{run_id}",
		"get_job: Get a run under its older name.", s.getRun, rest.Deprecated)
	rest.Patch(a.For(rest.Tools), "/v1/jobs/{run_id}/cancel",
		"cancel_job: Cancel a run under its older name.", s.cancelJob,
		rest.Deprecated)
	rest.Delete(a.For(rest.Write), "/v1/jobs/{run_id}",
		"delete_job: Delete the record of a run under its older name.", s.deleteRun,
		rest.Deprecated)
}

// OfRun holds the path parameter of operations on a run.
type OfRun struct {
	RunID rest.RunID `path:"run_id"`
}

// OfStep holds the path parameter of operations on a step.
type OfStep struct {
	StepID rest.StepID `path:"step_id"`
}

// defaultRuns is the default page size for runs, steps of a run, and messages of a run, as in Letta.
const defaultRuns = 100

func (s *Server) listRuns(ctx context.Context, input *struct {
	rest.Paging
	letta.RunFilter
}) ([]letta.Run, error) {
	if input.Order == "" && input.Ascending.Value {
		input.Order = rest.OldestFirst
	}
	return s.runs(ctx, input.Filter(), input.Page(defaultRuns, rest.NewestFirst))
}

func (s *Server) listJobs(ctx context.Context, input *struct {
	rest.Paging
	letta.RunFilter
	Source string `query:"source_id" deprecated:"true" doc:"Not served: leave it out."`
}) ([]letta.Run, error) {
	if input.Source != "" {
		return nil, rest.Unprocessable("query.source_id", "the files of a folder are no jobs here: leave it out, and read "+
			"GET /v1/folders/{folder_id}/files, which says how far each file is")
	}
	return s.listRuns(ctx, &struct {
		rest.Paging
		letta.RunFilter
	}{input.Paging, input.RunFilter})
}

func (s *Server) activeRuns(ctx context.Context, input *struct {
	AgentID    string         `query:"agent_id"`
	AgentIDs   []string       `query:"agent_ids,explode" doc:"Of these agents."`
	Background rest.Opt[bool] `query:"background" doc:"Only those of the background, or only the others."`
}) ([]letta.Run, error) {
	f := letta.RunFilter{AgentID: input.AgentID, AgentIDs: input.AgentIDs, Background: input.Background}.Filter()
	f.Active = true
	return s.runs(ctx, f, db.Page{Limit: rest.MaxPage})
}

func (s *Server) runs(ctx context.Context, f loop.Filter, p db.Page) ([]letta.Run, error) {
	list, err := s.Loop.Runs(ctx, rest.Org(ctx), f, p)
	return rest.Each(list, letta.RunOf), err
}

// AgentUsage is what models counted for an agent.
type AgentUsage struct {
	AgentID string          `json:"agent_id" doc:"The agent."`
	Total   agent.Counted   `json:"total" doc:"Of all days of the answer."`
	Days    []loop.DayUsage `json:"days" doc:"Without days of which nothing is known."`
}

func (s *Server) agentUsage(ctx context.Context, input *struct {
	rest.OfAgent
	From string `query:"start_date" doc:"From this time or day on."`
	To   string `query:"end_date" doc:"Up to this time or day."`
}) (AgentUsage, error) {
	f, err := letta.StepFilter{From: input.From, To: input.To}.Filter()
	if err != nil {
		return AgentUsage{}, err
	}
	a, err := s.Agents.Agent(ctx, rest.Org(ctx), string(input.AgentID))
	if err != nil {
		return AgentUsage{}, err
	}
	days, err := s.Loop.UsageByDay(ctx, rest.Org(ctx), a, f.From, f.To)
	u := AgentUsage{AgentID: a.ID, Days: append([]loop.DayUsage{}, days...)}
	for _, d := range days {
		u.Total.Answers += d.Answers
		u.Total.Prompt += d.Prompt
		u.Total.Completion += d.Completion
		u.Total.Read += d.Read
		u.Total.Write += d.Write
	}
	return u, err
}

func (s *Server) getRun(ctx context.Context, input *OfRun) (letta.Run, error) {
	r, err := s.Loop.RunByID(ctx, rest.Org(ctx), string(input.RunID))
	return letta.RunOf(r), err
}

func (s *Server) deleteRun(ctx context.Context, input *OfRun) (letta.Run, error) {
	r, err := s.Loop.DeleteRun(ctx, rest.Org(ctx), string(input.RunID))
	return letta.RunOf(r), err
}

func (s *Server) cancelJob(ctx context.Context, input *OfRun) (letta.Run, error) {
	r, err := s.Loop.RunByID(ctx, rest.Org(ctx), string(input.RunID))
	if err != nil {
		return letta.Run{}, err
	}
	if _, err := s.cancelNamed(ctx, r.AgentID, []string{r.ID}); err != nil {
		return letta.Run{}, err
	}
	r, err = s.Loop.AwaitEnd(ctx, rest.Org(ctx), r.ID)
	return letta.RunOf(r), err
}

func (s *Server) runMessages(ctx context.Context, input *struct {
	OfRun
	rest.Paging
}) ([]letta.MessageItem, error) {
	r, err := s.Loop.RunByID(ctx, rest.Org(ctx), string(input.RunID))
	if err != nil {
		return nil, err
	}
	return s.itemsOf(ctx, recall.MessageFilter{AgentID: r.AgentID, RunID: r.ID}, input.Paging)
}

func (s *Server) stepMessages(ctx context.Context, input *struct {
	OfStep
	rest.Paging
}) ([]letta.MessageItem, error) {
	st, err := s.Loop.StepByID(ctx, rest.Org(ctx), string(input.StepID))
	if err != nil {
		return nil, err
	}
	return s.itemsOf(ctx, recall.MessageFilter{AgentID: st.AgentID, StepID: st.ID}, input.Paging)
}

// itemsOf lists the items of messages. The default order is the oldest first.
func (s *Server) itemsOf(ctx context.Context, f recall.MessageFilter, p rest.Paging) ([]letta.MessageItem, error) {
	f.WithErrors, f.WithReset = true, true
	shown, err := s.messages(ctx, f, p.Page(defaultRuns, rest.OldestFirst), letta.SpeechTool{}.Options(nil))
	return letta.ItemsOf(shown, false), err
}

func (s *Server) runUsage(ctx context.Context, input *OfRun) (letta.RunUsage, error) {
	r, err := s.Loop.RunByID(ctx, rest.Org(ctx), string(input.RunID))
	if err != nil {
		return letta.RunUsage{}, err
	}
	u, err := s.Loop.UsageOf(ctx, rest.Org(ctx), r)
	return letta.RunUsageOf(u), err
}

func (s *Server) runMetrics(ctx context.Context, input *OfRun) (letta.RunMetrics, error) {
	r, err := s.Loop.RunByID(ctx, rest.Org(ctx), string(input.RunID))
	if err != nil {
		return letta.RunMetrics{}, err
	}
	u, err := s.Loop.UsageOf(ctx, rest.Org(ctx), r)
	if err != nil {
		return letta.RunMetrics{}, err
	}
	f := recall.MessageFilter{AgentID: r.AgentID, RunID: r.ID, Parts: []recall.PartType{recall.ToolCall},
		Roles: []recall.Role{recall.Assistant}}
	messages, err := s.Recall.Messages(ctx, rest.Org(ctx), f, db.Page{Ascending: true, Limit: rest.MaxPage})
	if err != nil {
		return letta.RunMetrics{}, err
	}
	tools, err := s.calledTools(ctx, messages)
	return letta.RunMetricsOf(r, u, tools), err
}

// calledTools returns the ids of the tools that messages call, each once. Tools that only a request defined have none.
func (s *Server) calledTools(ctx context.Context, messages []recall.Message) ([]string, error) {
	var names []string
	for _, m := range messages {
		for _, p := range m.Content {
			if p.Type == recall.ToolCall && !slices.Contains(names, p.Name) {
				names = append(names, p.Name)
			}
		}
	}
	ids := map[string]string{}
	for _, t := range s.Tools.Tools() {
		ids[t.Name] = t.ID
	}
	custom, err := s.Agents.ToolsNamed(ctx, rest.Org(ctx), names, nil)
	for _, t := range custom {
		ids[t.Name] = t.ID
	}
	called := []string{}
	for _, name := range names {
		if id, ok := ids[name]; ok {
			called = append(called, id)
		}
	}
	return called, err
}

func (s *Server) runSteps(ctx context.Context, input *struct {
	OfRun
	rest.Paging
}) ([]letta.RunStep, error) {
	r, err := s.Loop.RunByID(ctx, rest.Org(ctx), string(input.RunID))
	if err != nil {
		return nil, err
	}
	return s.steps(ctx, loop.StepFilter{RunID: r.ID}, input.Page(defaultRuns, rest.NewestFirst))
}

func (s *Server) listSteps(ctx context.Context, input *struct {
	rest.Paging
	letta.StepFilter
}) ([]letta.RunStep, error) {
	f, err := input.Filter()
	if err != nil {
		return nil, err
	}
	return s.steps(ctx, f, input.Page(50, rest.NewestFirst))
}

func (s *Server) steps(ctx context.Context, f loop.StepFilter, p db.Page) ([]letta.RunStep, error) {
	list, err := s.Loop.Steps(ctx, rest.Org(ctx), f, p)
	return rest.Each(list, letta.StepOf), err
}

func (s *Server) getStep(ctx context.Context, input *OfStep) (letta.RunStep, error) {
	st, err := s.Loop.StepByID(ctx, rest.Org(ctx), string(input.StepID))
	return letta.StepOf(st), err
}

func (s *Server) stepMetrics(ctx context.Context, input *OfStep) (letta.StepMetrics, error) {
	st, err := s.Loop.StepByID(ctx, rest.Org(ctx), string(input.StepID))
	return letta.StepMetricsOf(st), err
}

func (s *Server) stepFeedback(ctx context.Context, input *struct {
	OfStep
	Body letta.Feedback
}) (letta.RunStep, error) {
	st, err := s.Loop.SetFeedback(ctx, rest.Org(ctx), string(input.StepID), input.Body.Feedback.Pointer(),
		input.Body.Tags.Value)
	return letta.StepOf(st), err
}

// attachToRun sends the items of a background run, from a number on.
func (s *Server) attachToRun(a *rest.API, c echo.Context) error {
	id, err := rest.PathID(c, "run_id", "run")
	if err != nil {
		return err
	}
	ctx, cancel := s.bounded(c)
	defer cancel()
	r, err := s.Loop.RunByID(ctx, rest.Org(ctx), id)
	if err != nil {
		return err
	}
	input, _, err := rest.ReadJSON[letta.Attach](a, c, maxMessageBytes)
	if err != nil {
		return err
	}
	if input.After.Value, err = rest.QueryInt(c, "starting_after", input.After.Value); err != nil {
		return err
	}
	return s.attach(a, c, r, *input)
}

// attachToConversation sends the items of a run in a conversation: the run with the given id or otid, or else the
// active run.
func (s *Server) attachToConversation(a *rest.API, c echo.Context) error {
	var input *letta.Attach
	conversation, err := s.inConversation(c, func() (agentID string, err error) {
		if input, _, err = rest.ReadJSON[letta.Attach](a, c, maxMessageBytes); err == nil {
			agentID = input.AgentID.Value
		}
		return agentID, err
	})
	if err != nil {
		return err
	}
	ctx, cancel := s.bounded(c)
	defer cancel()
	r, err := s.Loop.Find(ctx, rest.Org(ctx), conversation, input.RunID.Value, input.OTID.Value)
	if errors.Is(err, db.ErrNotFound) {
		return db.Invalid("No active runs found for this conversation")
	}
	if err != nil {
		return err
	}
	return s.attach(a, c, r, *input)
}

func (s *Server) attach(a *rest.API, c echo.Context, r loop.Run, input letta.Attach) error {
	retention, err := s.Retention.Settings(c.Request().Context(), rest.Org(c.Request().Context()))
	switch {
	case err != nil:
		return err
	case !r.Background:
		return db.Invalid("Run %s was not made in the background, so that its stream is not kept: send messages with "+
			"background, or read GET /v1/runs/%s/messages", r.ID, r.ID)
	case r.CompletedAt != nil && retention.RunEvents > 0 &&
		time.Since(*r.CompletedAt) > time.Duration(retention.RunEvents)*time.Hour:
		return rest.Expired("EXPIRED: The stream of run " + r.ID + " is no longer kept; its messages are at /v1/runs/" +
			r.ID + "/messages")
	}
	return s.streamItems(a, c, r, itemStream{after: int64(input.After.Value), pings: !input.Pings.Set ||
		input.Pings.Null ||
		input.Pings.Value, poll: time.Duration(input.Poll.Value * float64(time.Second)), batch: input.Batch.Value})
}
