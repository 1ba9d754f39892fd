package server_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/loci-memory/loci/agent/loop"
	"github.com/loci-memory/loci/agent/loop/model/modeltest"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed/embedtest"
	"github.com/loci-memory/loci/recall"
)

// A run that was cancelled on another server stores nothing, even if its model answers before this server knows.
func TestALostRunStoresNothing(t *testing.T) {
	t.Parallel()
	for _, streams := range []string{"false", `true,"background":true`} {
		r, wait := newOwnRunner(t, ""), make(chan struct{})
		r.model.Says(modeltest.Answer{Text: "Too late", Wait: wait})
		reply := r.begun(`{"input":"Hello","streaming":` + streams + `}`)
		c, err := r.server.Recall.Conversation(t.Context(), r.org, r.agent, recall.DefaultConversation)
		if err != nil {
			t.Fatal(err)
		}
		other := loop.New(*r.server.Loop)
		if ids, err := other.Stop(t.Context(), r.org, c.ID, nil); err != nil || len(ids) != 1 {
			t.Fatalf("cancelled %v, %v", ids, err)
		}
		close(wait)
		if got := <-reply; !strings.Contains(got.Text, `"cancelled"`) || strings.Contains(got.Text, "Too late") {
			t.Errorf("streaming %s: got %d %s", streams, got.Code, got.Text)
		}
		checkSaid(t, "the log", r.log(), []string{"user_message Hello"})
	}
}

// If an organization is deleted while a run's model is asked, the run stores nothing more, and ends as cancelled.
func TestTheRunOfADeletedOrganizationStops(t *testing.T) {
	t.Parallel()
	r, wait := newRunner(t, ""), make(chan struct{})
	r.model.Says(modeltest.Answer{Text: "Too late", Wait: wait})
	reply := r.begun(`{"input":"Hello"}`)
	r.exec(`UPDATE organizations SET deleted_at = now() WHERE org = $1`, r.org)
	close(wait)
	if got := <-reply; !strings.Contains(got.Text, `"cancelled"`) || strings.Contains(got.Text, "Too late") {
		t.Errorf("got %d %s", got.Code, got.Text)
	}
}

// whole returns the stored items of a background run, as a client that attaches to it sees them.
func (r runner) whole(run string) (texts []string, withdrawn any) {
	r.t.Helper()
	items, _ := r.stream("/v1/runs/"+run+"/stream", `{"include_pings":false}`)
	for _, item := range items {
		if item["withdrawn_message_id"] != nil {
			withdrawn = item["withdrawn_message_id"]
		}
	}
	return itemTexts(items), withdrawn
}

// If an answer is not stored, its pieces are withdrawn. Clients that follow the run are told, and clients that attach
// later do not see the pieces.
func TestPiecesOfALostAnswerAreWithdrawn(t *testing.T) {
	t.Parallel()
	r := newOwnRunner(t, "")
	r.model.Says(modeltest.Answer{Text: "Lost", Cut: true})
	items, _ := r.stream(r.path(), `{"input":"Hello","streaming":true,"stream_tokens":true,"include_pings":false}`)
	checkSaid(t, "the stream", itemTexts(items), []string{"assistant_message Lo", "assistant_message st", "ping",
		"stop_reason llm_api_error", "error_message"})
	if items[2]["withdrawn_message_id"] != items[0]["id"] {
		t.Errorf("the message %v is withdrawn by %v", items[0]["id"], items[2])
	}
	r.model.Says(modeltest.Answer{Text: "Lost", Cut: true})
	run := fmt.Sprint(fields(t, r.must("POST", r.path()+"/async", `{"input":"Hello","stream_tokens":true}`))["id"])
	r.ended(run)
	said, withdrawn := r.whole(run)
	checkSaid(t, "a cut answer", said, []string{"ping", "stop_reason llm_api_error", "error_message"})
	if withdrawn == nil {
		t.Error("nothing is withdrawn")
	}
	for _, end := range []string{"cancel", "stop"} {
		r := newOwnRunner(t, "")
		stop, _ := r.stoppable()
		r.model.Says(modeltest.Answer{Text: "Lost", After: make(chan struct{})})
		run := fmt.Sprint(fields(t, r.must("POST", r.path()+"/async", `{"input":"Hello","stream_tokens":true}`))["id"])
		embedtest.Eventually(t, "a piece is stored", func() bool {
			list, _, err := r.server.Loop.Items(t.Context(), r.org, run, 0, 1000)
			return err == nil && len(list) > 0
		})
		want := []string{"ping"}
		if end == "cancel" {
			r.must("POST", r.path()+"/cancel", `{}`)
			r.ended(run)
			want = append(want, "stop_reason cancelled", "usage_statistics")
		} else {
			stop()
			r.goesOn(run)
			want = append(want, "assistant_message Don", "assistant_message e.", "stop_reason end_turn", "usage_statistics")
		}
		items, _ := r.stream("/v1/runs/"+run+"/stream", `{"starting_after":1,"include_pings":false}`)
		if len(items) != len(want) {
			t.Errorf("after %s a client that saw the first piece is sent %v", end, itemTexts(items))
		}
		said, withdrawn := r.whole(run)
		checkSaid(t, "after "+end, said, want)
		if withdrawn == nil {
			t.Error("nothing is withdrawn")
		}
	}
}

func (r runner) ended(run string) {
	r.t.Helper()
	embedtest.Eventually(r.t, "the run ends", func() bool {
		return fields(r.t, r.must("GET", "/v1/runs/"+run, ""))["status"] != "running"
	})
}

// If a server stops after it stored messages and before it showed them, they are shown when the run goes on.
func TestStoredMessagesAreShownWhenARunGoesOn(t *testing.T) {
	t.Parallel()
	r := newOwnRunner(t, "")
	stop, _ := r.stoppable()
	r.model.Says(callOf("a", "conversation_search", `{"query":"x"}`), modeltest.Answer{Wait: make(chan struct{})})
	n := len(r.model.Requests())
	run := fmt.Sprint(fields(t, r.must("POST", r.path()+"/async", hello))["id"])
	r.model.Await(t, n+2)
	stop()
	if _, err := r.pool.Exec(t.Context(), `DELETE FROM run_items WHERE org = $1 AND seq > 1`, r.org); err != nil {
		t.Fatal(err)
	}
	r.goesOn(run)
	said, _ := r.whole(run)
	checkSaid(t, "the items", said, []string{"tool_call_message conversation_search", "tool_return_message a success",
		"assistant_message Done.", "stop_reason end_turn", "usage_statistics"})
}

// An answer that breaks off is asked for again, in a stream of pieces too, if none of it was sent to the client.
func TestAnAnswerOfWhichNothingWasSentIsAskedForAgain(t *testing.T) {
	t.Parallel()
	r := newRunner(t, "")
	r.model.Says(modeltest.Answer{Closes: true}, modeltest.Answer{Reasoning: "Hm..", Cut: true},
		modeltest.Answer{Text: "Hello"})
	items, _ := r.stream(r.path(), `{"input":"Hello","streaming":true,"stream_tokens":true,"include_pings":false,
		"include_return_message_types":["assistant_message"]}`)
	checkSaid(t, "the stream", itemTexts(items), []string{"assistant_message Hel", "assistant_message lo",
		"stop_reason end_turn", "usage_statistics"})
}

// A request that answers only some of the waiting calls is shown the others again, in every form of answer.
func TestCallsThatStillWaitAreShownAgain(t *testing.T) {
	t.Parallel()
	for _, streams := range []string{"false", "true", `true,"background":true`, `true,"stream_tokens":true`} {
		r := newRunner(t, askingAgent)
		message := r.asks()
		body := strings.TrimSuffix(approvals("o", approveI), "}") + `,"streaming":` + streams + `}`
		for range 2 {
			if streams == `true,"background":true` && strings.Contains(strings.Join(r.log(), " "), "tool_return") {
				break // clients attach to a background run, and do not repeat it
			}
			got := r.call("POST", r.path(), body)
			var items []map[string]any
			if streams == "false" {
				for _, m := range fields(t, got.Text)["messages"].([]any) {
					items = append(items, m.(map[string]any))
				}
			} else {
				items, _ = readStream(t, got.Text)
				items = items[1 : len(items)-2] // without the ping, the reason and the usage
			}
			checkSaid(t, streams, itemTexts(items), []string{"tool_return_message i success",
				"approval_request_message weather"})
			if last := items[len(items)-1]; last["id"] != message || strings.Contains(fmt.Sprint(last), "memory_insert") {
				t.Errorf("streaming %s: asked again by %v, want the message %s", streams, last, message)
			}
		}
		r.model.Says(modeltest.Answer{Text: "Noted."})
		if got := r.send(approvals("p", resultW)); got.StopReason.StopReason != "end_turn" {
			t.Errorf("streaming %s: the last answer ends with %+v", streams, got)
		}
	}
}

// If a model of Anthropic's pauses, it is asked again.
func TestAPausedAnswerGoesOn(t *testing.T) {
	t.Parallel()
	r := newRunner(t, `{"name":"a","model":"anthropic/claude-sonnet-4-5"}`)
	r.model.Says(modeltest.Answer{Text: "Wait.", Finish: "pause"}, modeltest.Answer{Text: "Here."})
	got := r.send(hello)
	checkSaid(t, "the answer", itemTexts(got.Messages), []string{"assistant_message Wait.", "assistant_message Here."})
	asked := r.model.Requests()
	if got.StopReason.StopReason != "end_turn" || got.Usage.Steps != 2 ||
		!strings.Contains(string(asked[1].Fields["messages"]), "Wait.") {
		t.Errorf("got %+v after %s", got, asked[1].Body)
	}
}

// If the answer's length cuts a call, the pieces of the call are withdrawn, and a text is sent in its place.
func TestPiecesOfACutCallAreWithdrawn(t *testing.T) {
	t.Parallel()
	r := newRunner(t, "")
	cut := modeltest.Call{ID: "cut", Name: "memory_insert", Arguments: `{"label":"hum`}
	whole := modeltest.Call{ID: "whole", Name: "conversation_search", Arguments: `{"query":"tea"}`}
	for _, background := range []bool{false, true} {
		for name, c := range map[string]struct {
			answer modeltest.Answer
			want   []string
		}{
			"the only call": {modeltest.Answer{Calls: []modeltest.Call{cut}}, []string{"assistant_message "}},
			"behind a text": {modeltest.Answer{Text: "Wait", Calls: []modeltest.Call{cut}}, nil},
			"the second":    {modeltest.Answer{Text: "Wait", Calls: []modeltest.Call{whole, cut}}, nil},
		} {
			c.answer.Finish = "length"
			if r.model.Says(c.answer); name == "the second" {
				r.model.Says(modeltest.Answer{Text: "Done."})
			}
			items, _ := r.stream(r.path(), fmt.Sprintf(`{"input":"Hello","streaming":true,"stream_tokens":true,
				"include_pings":false,"background":%v}`, background))
			last, texts := -1, ""
			for i, item := range items {
				if ids, ok := item["withdrawn_tool_call_ids"].([]any); ok && len(ids) == 1 && ids[0] == "cut" {
					last = i
				} else if last >= 0 && i == last+1 {
					texts = fmt.Sprint(item["message_type"], " ", item["content"])
				}
			}
			if last < 0 || c.want != nil && (!strings.HasPrefix(texts, c.want[0]) || len(texts) < len(c.want[0])+10) {
				t.Errorf("%s, background %v: the stream is %v", name, background, itemTexts(items))
			}
			if !background {
				continue
			}
			run := fmt.Sprint(items[0]["run_id"])
			if all := r.must("GET", "/v1/runs/"+run+"/stream?starting_after=0", ""); strings.Contains(all, `label\":\"hum`) {
				t.Errorf("%s: an attached stream has the pieces: %s", name, all)
			}
		}
	}
	for _, line := range r.log() {
		if strings.HasPrefix(line, "tool_call_message memory_insert") {
			t.Errorf("the log has the call: %q", line)
		}
	}
}

// The pieces of a background run's answer are stored even while its model is silent.
func TestPiecesAreStoredWhileAModelIsSilent(t *testing.T) {
	t.Parallel()
	r := newOwnRunner(t, "")
	silent := make(chan struct{})
	r.model.Says(modeltest.Answer{Text: "Hello", After: silent})
	run := fmt.Sprint(fields(t, r.must("POST", r.path()+"/async", `{"input":"Hello","stream_tokens":true}`))["id"])
	embedtest.Eventually(t, "two pieces are stored", func() bool {
		list, _, err := r.server.Loop.Items(t.Context(), r.org, run, 0, 1000)
		return err == nil && len(list) >= 2
	})
	close(silent)
	r.ended(run)
}

// If an answer ends while pieces are being stored, the pieces are stored once, and later items have the next numbers.
func TestPiecesAreStoredWhileAnAnswerEnds(t *testing.T) {
	t.Parallel()
	r := newOwnRunner(t, "")
	slowDB := &lateDB{DB: r.server.Loop.DB, stored: make(chan struct{})}
	config, log := *r.server.Loop, &safeBuffer{}
	config.DB, config.Log = slowDB, slog.New(slog.NewTextHandler(log, nil))
	r.own().Loop = loop.New(config)
	t.Cleanup(runLoop(r.server.Loop))
	ends := make(chan struct{})
	r.model.Says(modeltest.Answer{Text: "Done", After: ends})
	run := fmt.Sprint(fields(t, r.must("POST", r.path()+"/async", `{"input":"Hello","stream_tokens":true}`))["id"])
	<-slowDB.stored
	close(ends)
	r.ended(run)
	said, _ := r.whole(run)
	checkSaid(t, "the stream", said, []string{"assistant_message Do", "assistant_message ne", "stop_reason end_turn",
		"usage_statistics"})
	if text := log.String(); text != "" {
		t.Errorf("the log has %s", text)
	}
}

// lateDB answers the second statement that stores items with a delay, or when its context has ended.
type lateDB struct {
	db.DB
	stored chan struct{}
	n      atomic.Int32
}

func (d *lateDB) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	tag, err := d.DB.Exec(ctx, sql, args...)
	if !strings.Contains(sql, "INSERT INTO run_items") || d.n.Add(1) != 2 {
		return tag, err
	}
	close(d.stored)
	select {
	case <-ctx.Done():
		return tag, ctx.Err()
	case <-time.After(300 * time.Millisecond):
		return tag, err
	}
}
