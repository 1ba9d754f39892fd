package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/event"
	"github.com/loci-memory/loci/embed/embedtest"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/server/servertest"
)

const defaultOrg = db.Org(1)

// wireEvent is an agent's event in the API's form.
type wireEvent struct {
	Seq     int64
	Type    string
	RefID   string `json:"ref_id"`
	At      time.Time
	Message *recall.Message
}

// events reads some of an agent's events.
func (c *client) events(agent, query string) []wireEvent {
	c.t.Helper()
	var list []wireEvent
	if err := json.Unmarshal([]byte(c.must("GET", "/v1/agents/"+agent+"/events"+query, "")), &list); err != nil {
		c.t.Fatal(err)
	}
	return list
}

func positions(list []wireEvent) []int64 {
	all := make([]int64, len(list))
	for i, e := range list {
		all[i] = e.Seq
	}
	return all
}

// say appends messages to an agent's default conversation.
func (c *client) say(agent string, texts ...string) {
	c.t.Helper()
	if _, err := c.server.Recall.Append(c.t.Context(), c.org, agent, "", drafts(texts...)); err != nil {
		c.t.Fatalf("append: %v", err)
	}
}

func drafts(texts ...string) []recall.Draft {
	all := make([]recall.Draft, len(texts))
	for i, text := range texts {
		all[i] = recall.Draft{Role: recall.User, Content: []recall.Part{{Type: recall.Text, Text: text}}}
	}
	return all
}

func TestEventsAreReadByPosition(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{"name":"a"}`) // 1 is its creation, 2 its instructions
	c.say(agent, "one", "two", "three")
	for range 5 {
		c.must("PATCH", "/v1/agents/"+agent, `{"name":"b"}`)
	}
	for name, r := range map[string]struct {
		query string
		want  []int64
	}{
		"all":                              {"", []int64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}},
		"a slice":                          {"?from=4&to=6", []int64{4, 5, 6}},
		"a few before one":                 {"?before=5&limit=3", []int64{2, 3, 4}},
		"a few before one, newest first":   {"?before=5&limit=3&order=desc", []int64{4, 3, 2}},
		"a few after one":                  {"?after=5&limit=3", []int64{6, 7, 8}},
		"after none":                       {"?after=0&limit=2", []int64{1, 2}},
		"after none and before one":        {"?after=0&before=9&limit=2", []int64{1, 2}},
		"the newest":                       {"?order=desc&limit=2", []int64{10, 9}},
		"after the newest":                 {"?after=10", []int64{}},
		"a type":                           {"?types=message", []int64{2, 3, 4, 5}},
		"types, repeated":                  {"?types=message&types=agent_created", []int64{1, 2, 3, 4, 5}},
		"types with commas":                {"?types=agent_created,%20agent_updated", []int64{1, 6, 7, 8, 9, 10}},
		"empty values are absent":          {"?from=&to=&before=&after=&types=&limit=2&order=&consumer=", []int64{1, 2}},
		"a reader that is not there":       {"?consumer=new&limit=2", []int64{1, 2}},
		"a reader that is not there, to 1": {"?consumer=new&to=1", []int64{1}},
	} {
		if diff := cmp.Diff(r.want, positions(c.events(agent, r.query))); diff != "" {
			t.Errorf("%s, %s (-want +got):\n%s", name, r.query, diff)
		}
	}
	list := c.events(agent, "?from=1&to=3")
	if m := list[2].Message; m == nil || m.ID != list[2].RefID || m.Seq != 3 || m.Content[0].Text != "one" ||
		m.AgentID != agent {
		t.Errorf("a message: got %+v", list[2])
	}
	if list[0].Type != "agent_created" || list[0].RefID != agent || list[0].Message != nil || list[0].At.IsZero() {
		t.Errorf("a creation: got %+v", list[0])
	}
	if got := c.must("GET", "/v1/agents/"+agent+"/events?limit=1", ""); !strings.HasPrefix(got,
		`[{"seq":1,"type":"agent_created","ref_id":"`+agent+`","at":"`) || strings.Contains(got, "message") {
		t.Errorf("on the wire: got %s", got)
	}
	if got := c.must("GET", "/v1/agents/"+agent+"/events?after=10", ""); got != "[]" {
		t.Errorf("nothing: got %s, want an empty list", got)
	}
}

const knownTypes = "the types are agent_created, agent_updated, folder_attached, folder_detached, file_opened, " +
	"file_used, file_closed, message, " +
	"archive_attached, archive_detached, passage_inserted, passages_inserted, passage_updated, passage_deleted, " +
	"block_attached, block_detached, block_changed, memory_tree_attached, memory_tree_detached, " +
	"memory_file_changed, compaction, compaction_reverted, window_warning, " +
	"prompt_refused, refusal_undone, prompts_growing, working_memory_changed, policy_changed"

func TestEventsRefuseWhatTheyCannotRead(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := "/v1/agents/" + c.made("/v1/agents", `{"name":"a"}`)
	consumer := "query.consumer: a named reader reads upwards from where it stands; leave out from, before, after and " +
		"order=desc"
	for _, r := range []struct {
		method, target, body string
		status               int
		detail               string
	}{
		{"GET", agent + "/events?from=5&to=4", "", 422, "from is 5, which is beyond to, which is 4"},
		{"GET", agent + "/events?after=5&before=4", "", 422, "after is 5, which is beyond before, which is 4"},
		{"GET", agent + "/events?after=-1", "", 422, "after is -1; positions of events begin at 1"},
		{"GET", agent + "/events?from=0", "", 422, "query.from: expected number >= 1. Got: 0"},
		{"GET", agent + "/events?before=0", "", 422, "query.before: expected number >= 1. Got: 0"},
		{"GET", agent + "/events?to=x", "", 422, `query.to: invalid integer. Got: "x"`},
		{"GET", agent + "/events?limit=1001", "", 422, "query.limit: expected number <= 1000. Got: 1001"},
		{"GET", agent + "/events?order=up", "", 422, `query.order: expected value to be one of "asc, desc". Got: "up"`},
		{"GET", agent + "/events?types=message,said", "", 422, "types: there is no type 'said'; " + knownTypes},
		{"GET", agent + "/events?consumer=r&after=0", "", 422, consumer},
		{"GET", agent + "/events?consumer=r&from=1", "", 422, consumer},
		{"GET", agent + "/events?consumer=r&before=3", "", 422, consumer},
		{"GET", agent + "/events?consumer=r&order=desc", "", 422, consumer},
		{"GET", agent + "/events?consumer=a%0Ab", "", 422, `the consumer's name "a\nb" has control characters, or is ` +
			`not UTF-8`},
		{"GET", someAgent + "/events", "", 404, "Agent with ID agent-123e4567-e89b-42d3-8456-426614174000 not found"},
		{"GET", someAgent + "/events?consumer=r", "", 404, "Agent with ID agent-123e4567-e89b-42d3-8456-426614174000 " +
			"not found"},
		{"GET", agent + "/events/stream?after=x", "", 422, `query.after: expected the position of an event. Got: "x"`},
		{"GET", agent + "/events/stream?after=-1", "", 422, "after is -1; positions of events begin at 1"},
		{"GET", agent + "/events/stream?after=1&consumer=r", "", 422, "query.consumer: a named reader reads on from where " +
			"it stands; leave out after"},
		{"GET", agent + "/events/stream?types=said", "", 422, "types: there is no type 'said'; " + knownTypes},
		{"GET", someAgent + "/events/stream", "", 404, "Agent with ID agent-123e4567-e89b-42d3-8456-426614174000 not found"},
		{"GET", someAgent + "/events/stream?consumer=r", "", 404, "Agent with ID " +
			"agent-123e4567-e89b-42d3-8456-426614174000 not found"},
		{"GET", "/v1/agents/a/events/stream", "", 422, `path.agent_id: expected string to be agent- and a lower-case UUID, ` +
			`such as agent-123e4567-e89b-42d3-8456-426614174000. Got: "a"`},
		{"PUT", agent + "/consumers/r", `{"seq":3}`, 422, "seq is 3; it must be from 0 to 2, the agent's newest event"},
		{"PUT", agent + "/consumers/r", `{}`, 422, `body: expected required property seq to be present`},
		{"PUT", agent + "/consumers/" + strings.Repeat("a", 201), `{"seq":1}`, 422,
			"the consumer's name has 201 characters; it must have from 1 to 200"},
		{"PUT", agent + "/consumers/r", `{"seq":1,"expected_seq":2}`, 409,
			"expected_seq is 2, but consumer 'r' stands at 0; read on from there, or commit without expected_seq"},
		{"DELETE", agent + "/consumers/r", "", 404, "agent " + strings.TrimPrefix(agent, "/v1/agents/") +
			" has no consumer 'r'; the first commit makes it"},
		{"GET", agent + "/consumers/r", "", 404, "agent " + strings.TrimPrefix(agent, "/v1/agents/") +
			" has no consumer 'r'; the first commit makes it"},
	} {
		got := c.call(r.method, r.target, r.body)
		if detail := fields(t, got.Text)["detail"]; got.Code != r.status || detail != r.detail {
			t.Errorf("%s %s %s: got %d %v, want %d %s", r.method, r.target, r.body, got.Code, detail, r.status, r.detail)
		}
	}
}

func TestNamedReadersGoOnWhereTheyStopped(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{"name":"a"}`)
	c.say(agent, "one", "two", "three")
	base := "/v1/agents/" + agent + "/consumers"
	if got := c.must("GET", base, ""); got != "[]" {
		t.Errorf("at first: got %s", got)
	}
	for _, step := range []struct {
		target, body string
		next         []int64
	}{
		{"/a%20reader%2F1", `{"seq":2}`, []int64{3, 4, 5}},
		{"/a%20reader%2F1", `{"seq":4,"expected_seq":2}`, []int64{5}},
		{"/a%20reader%2F1", `{"seq":1,"expected_seq":null}`, []int64{2, 3, 4, 5}},
		{"/other", `{"seq":5,"expected_seq":0}`, []int64{}},
	} {
		if got := pick(t, c.must("PUT", base+step.target, step.body), "seq"); !strings.HasPrefix(step.body,
			strings.TrimSuffix(got, "}")) {
			t.Errorf("%s %s: got %s", step.target, step.body, got)
		}
		name := strings.TrimPrefix(step.target, "/")
		if diff := cmp.Diff(step.next, positions(c.events(agent, "?consumer="+name))); diff != "" {
			t.Errorf("%s after %s (-want +got):\n%s", step.target, step.body, diff)
		}
	}
	if diff := cmp.Diff([]int64{2, 3}, positions(c.events(agent, "?consumer=a%20reader%2F1&types=message&to=4&limit=2"+
		"&order=asc"))); diff != "" {
		t.Errorf("a part of what follows (-want +got):\n%s", diff)
	}
	if got := fields(t, c.must("GET", base+"/a%20reader%2F1", "")); got["name"] != "a reader/1" || got["seq"] != 1.0 ||
		got["updated_at"] == nil {
		t.Errorf("got %v", got)
	}
	if got := c.must("GET", base+"?after=a%20reader%2F1", ""); !strings.HasPrefix(got, `[{"name":"other","seq":5,`) {
		t.Errorf("the second page of readers: got %s", got)
	}
	c.must("DELETE", base+"/other", "")
	if got := positions(c.events(agent, "?consumer=other")); len(got) != 5 {
		t.Errorf("a reader that was forgotten: got %v, want all five", got)
	}
}

// sse is a stream of an agent's events as a client reads it.
type sse struct {
	lines *bufio.Scanner
	close func()
}

// tail opens a stream. last is the client's last event, sent in a header; empty for none.
func (c *client) tail(ctx context.Context, web *httptest.Server, agent, query, last string) (*sse, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, web.URL+"/v1/agents/"+agent+"/events/stream"+query, nil)
	if err != nil {
		cancel()
		return nil, err
	}
	for i := 0; i < len(c.headers()); i += 2 {
		r.Header.Set(c.headers()[i], c.headers()[i+1])
	}
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	answer, err := http.DefaultClient.Do(r) //nolint:bodyclose // close closes it
	if err != nil {
		cancel()
		return nil, err
	}
	closing := func() { cancel(); answer.Body.Close() }
	if answer.StatusCode != http.StatusOK || answer.Header.Get("Content-Type") != "text/event-stream" {
		closing()
		return nil, fmt.Errorf("got %d, %v", answer.StatusCode, answer.Header)
	}
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, 1<<20)
	return &sse{lines: lines, close: closing}, nil
}

func (c *client) mustTail(web *httptest.Server, agent, query, last string) *sse {
	c.t.Helper()
	s, err := c.tail(c.t.Context(), web, agent, query, last)
	if err != nil {
		c.t.Fatalf("follow %s%s: %v", agent, query, err)
	}
	c.t.Cleanup(s.close)
	return s
}

var errEnd = errors.New("the stream has ended")

// next returns the next event, and checks that the event's id is its position. It returns errEnd at the end.
func (s *sse) next() (e wireEvent, err error) {
	id := ""
	for s.lines.Scan() {
		if text, ok := strings.CutPrefix(s.lines.Text(), "id: "); ok {
			id = text
		}
		if text, ok := strings.CutPrefix(s.lines.Text(), "data: "); ok {
			err = json.Unmarshal([]byte(text), &e)
			if err == nil && id != strconv.FormatInt(e.Seq, 10) {
				err = fmt.Errorf("the id is %q, of %s", id, text)
			}
			return e, err
		}
	}
	if err := s.lines.Err(); err != nil {
		return e, err
	}
	return e, errEnd
}

// expect reads events, and checks their positions.
func (s *sse) expect(t *testing.T, what string, want ...int64) (last wireEvent) {
	t.Helper()
	var got []int64
	for range want {
		e, err := s.next()
		if err != nil {
			t.Fatalf("%s: after %v: %v", what, got, err)
		}
		got, last = append(got, e.Seq), e
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
	return last
}

func (s *sse) ends(t *testing.T, what string) {
	t.Helper()
	if e, err := s.next(); !errors.Is(err, errEnd) {
		t.Errorf("%s: got %+v, %v, want the end", what, e, err)
	}
}

// isRefused checks that the stream's last event is an error with a code.
func (s *sse) isRefused(t *testing.T, what, code string) {
	t.Helper()
	var got []string
	for s.lines.Scan() {
		got = append(got, s.lines.Text())
	}
	text := strings.Join(got, "\n")
	if !strings.Contains(text, "event: error\ndata: {") || strings.Count(text, "data: ") != 1 ||
		!strings.Contains(text, `"code":"`+code+`"`) || s.lines.Err() != nil {
		t.Errorf("%s: got %v, %q, want one event with the error %s", what, s.lines.Err(), text, code)
	}
}

// isLast checks that the stream's remaining lines are these.
func (s *sse) isLast(t *testing.T, what string, want ...string) {
	t.Helper()
	var got []string
	for s.lines.Scan() {
		got = append(got, s.lines.Text())
	}
	if len(got) > 0 && got[0] == "" { // the blank line that ends the previous event
		got = got[1:]
	}
	if diff := cmp.Diff(want, got); diff != "" || s.lines.Err() != nil {
		t.Errorf("%s: %v (-want +got):\n%s", what, s.lines.Err(), diff)
	}
}

func TestStreamsSendEventsAsTheyHappen(t *testing.T) {
	t.Parallel()
	c, web := newWebClient(t)
	agent := c.made("/v1/agents", `{"name":"a"}`)
	c.say(agent, "one")
	c.must("PUT", "/v1/agents/"+agent+"/consumers/r", `{"seq":2}`)
	whole, after := c.mustTail(web, agent, "", ""), c.mustTail(web, agent, "?after=3", "")
	consumer, back := c.mustTail(web, agent, "?consumer=r", ""), c.mustTail(web, agent, "?after=0&consumer=r", "1")
	renames := c.mustTail(web, agent, "?types=agent_updated,agent_created&types=file_used", "")
	whole.expect(t, "what was there", 1, 2, 3)
	consumer.expect(t, "after the consumer's", 3)
	back.expect(t, "a client that is back", 2, 3)
	renames.expect(t, "of a type", 1)
	c.say(agent, "two")
	for what, s := range map[string]*sse{"from the first": whole, "after a position": after, "of a consumer": consumer,
		"of a client that is back": back} {
		if e := s.expect(t, what, 4); e.Type != "message" || e.Message == nil || e.Message.Content[0].Text != "two" ||
			e.RefID != e.Message.ID {
			t.Errorf("%s: got %+v", what, e)
		}
	}
	c.must("PATCH", "/v1/agents/"+agent, `{"name":"b"}`)
	renames.expect(t, "of a type, later", 5)
	whole.expect(t, "a change", 5)
	whole.close()
	embedtest.Eventually(t, "a stream ends with its client", func() bool { return c.server.Followers.Count() <= 4 })
}

func TestStreamsEndWithTheirAgentAndTheServer(t *testing.T) {
	t.Parallel()
	c, web := newWebClient(t)
	deleted, stays := c.made("/v1/agents", `{"name":"a"}`), c.made("/v1/agents", `{"name":"b"}`)
	one, two := c.mustTail(web, deleted, "", ""), c.mustTail(web, stays, "", "")
	one.expect(t, "one", 1, 2)
	two.expect(t, "the other", 1, 2)
	c.must("DELETE", "/v1/agents/"+deleted, "")
	one.isLast(t, "its agent was deleted", `event: deleted`, `data: {"agent_id":"`+deleted+`"}`, "")
	if got := c.call("GET", "/v1/agents/"+deleted+"/events", ""); got.Code != 404 {
		t.Errorf("the events of a deleted agent: got %d %s", got.Code, got.Text)
	}
	c.stopWatching()
	two.ends(t, "the server stops")
	c.mustTail(web, stays, "", "").ends(t, "the server has stopped")
}

func TestAStreamEndsWithItsKey(t *testing.T) {
	t.Parallel()
	c, web := newWebClient(t)
	var needsKey atomic.Bool
	c.own().OpenOrg = func(ctx context.Context) (db.Org, error) {
		if needsKey.Load() {
			return 0, db.ErrNotFound
		}
		return openOrg(ctx)
	}
	c.Handler = c.server.Handler()
	agent := c.made("/v1/agents", `{"name":"a"}`)
	open := c.mustTail(web, agent, "", "")
	open.expect(t, "without any key", 1, 2)
	kept, revoked := c.keyed(), c.keyed()
	other, gone := kept.mustTail(web, agent, "", ""), revoked.mustTail(web, agent, "", "")
	other.expect(t, "with a key", 1, 2)
	gone.expect(t, "with another", 1, 2)
	if _, err := c.server.Keys.Revoke(t.Context(), revoked.key); err != nil {
		t.Fatal(err)
	}
	needsKey.Store(true)
	c.say(agent, "a secret")
	gone.isRefused(t, "its key was revoked", "unauthorized")
	open.isRefused(t, "the server needs a key now", "unauthorized")
	other.expect(t, "with the key that is left", 3)
	if _, err := c.pool.Exec(t.Context(), `UPDATE api_keys SET expires_at = now() WHERE org = $1`, c.org); err != nil {
		t.Fatal(err)
	}
	c.say(agent, "a secret")
	other.isRefused(t, "its key has expired", "key_expired")
}

func TestStreamsOfOneOrganizationStarveNoOther(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	greedy, other := c.as("greedy"), c.as("other")
	agent := greedy.made("/v1/agents", `{"name":"a"}`)
	key, err := c.server.Keys.Lookup(t.Context(), greedy.key)
	if err != nil {
		t.Fatal(err)
	}
	for range event.MaxSubscriptions {
		follower, err := c.server.Followers.Follow(t.Context(), key.Org, agent, 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(follower.Close)
	}
	got := greedy.call("GET", "/v1/agents/"+agent+"/events/stream", "")
	servertest.CheckProblem(t, got, 429, map[string]any{"detail": "1000 streams of this organization are open, which is " +
		"the most: close some, or poll"})
	if got.Header().Get("Retry-After") != "10" {
		t.Errorf("got Retry-After %q, want 10", got.Header().Get("Retry-After"))
	}
	web := httptest.NewServer(c)
	t.Cleanup(web.Close)
	other.mustTail(web, other.made("/v1/agents", `{"name":"b"}`), "", "").expect(t, "another organization", 1, 2)
}

// Messages of a deleted conversation keep their places in the log's order, without their contents.
func TestEventsOfDeletedConversationsStay(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{"name":"a"}`)
	talk, err := c.server.Recall.CreateConversation(t.Context(), c.org, agent, recall.NewConversation{})
	if err != nil {
		t.Fatal(err)
	}
	before := c.events(agent, "?types=message")
	if err := c.server.Recall.DeleteConversation(t.Context(), c.org, talk.ID); err != nil {
		t.Fatal(err)
	}
	after := c.events(agent, "?types=message")
	if len(before) != 2 || before[1].Message == nil || len(after) != 2 || after[1].Message != nil ||
		after[1].RefID != before[1].RefID {
		t.Errorf("before it was deleted: %+v, after: %+v", before, after)
	}
}
