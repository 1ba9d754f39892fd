package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/llm/llmtest"
	"github.com/loci-memory/loci/compaction/plan"
	"github.com/loci-memory/loci/compaction/store"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/db/dbtest/scale"
	"github.com/loci-memory/loci/db/event"
	"github.com/loci-memory/loci/recall"
)

// windows is two servers on one database with a slow model, and everything that was acknowledged to the agents' loops.
type windows struct {
	t        *testing.T
	pool     *pgxpool.Pool
	servers  []*serverProcess
	thinking atomic.Int64 // requests that the model works on
	threads  []*thread
	enough   context.Context // ends when loops should stop

	compactions int // compactions of all conversations in the end, including reverted ones

	mu      sync.Mutex
	counted map[string]int // outcomes of requests
}

// thread is a conversation of an agent.
type thread struct {
	agent, conversation string
	window              int

	mu       sync.Mutex
	said     int
	promised []recall.Appended // acknowledgements to its loop, in the loop's order
	beside   []recall.Appended // acknowledgements to others
}

// The model is slow, and one of the two servers is killed at random moments. Agents' loops capture turns with tool
// calls through both servers, prompts are read, and others compact, revert and interrupt. In the end, each conversation
// has everything that was acknowledged, once and in order, and was compacted frame by frame. Each prompt, then and
// meanwhile, was within its window, and had each result with its call. Each message is in view, or in the range that
// the summary names. LOCI_CHAOS_ROUNDS sets how often servers are killed; LOCI_CHAOS_SEED repeats a run.
func TestTheWindowOutlivesKilledServers(t *testing.T) {
	scale.Long(t)
	t.Parallel()
	rounds := number(t, "LOCI_CHAOS_ROUNDS", scale.Of(1, 200))
	seed := chaosSeed(t)
	t.Logf("LOCI_CHAOS_SEED=%d LOCI_CHAOS_ROUNDS=%d", seed, rounds)
	dice := rand.New(rand.NewPCG(uint64(seed), 3)) //nolint:gosec // repeatable
	w := newWindows(t, dice)
	began := time.Now()
	enough, stop := context.WithCancel(t.Context())
	w.enough = enough
	var all sync.WaitGroup
	run := func(work func(*rand.Rand)) {
		dice := rand.New(rand.NewPCG(dice.Uint64(), 4)) //nolint:gosec // repeatable
		all.Go(func() { work(dice) })
	}
	for _, th := range w.threads {
		run(func(dice *rand.Rand) { w.loops(dice, th) })
	}
	run(w.reads)
	run(w.meddles)
	run(w.interrupts)
	hit := 0
	for range rounds {
		db.Pause(t.Context(), time.Duration(100+dice.IntN(900))*time.Millisecond)
		// Two of three kills come while the model thinks.
		for tries := 0; dice.IntN(3) > 0 && w.thinking.Load() == 0 && tries < 200; tries++ {
			db.Pause(t.Context(), 5*time.Millisecond)
		}
		hit += w.restart(dice)
	}
	// A run proves little if no server is killed while the model thinks.
	for deadline := time.Now().Add(patience); hit == 0 && time.Now().Before(deadline); {
		if db.Pause(t.Context(), time.Millisecond); w.thinking.Load() > 0 {
			hit += w.restart(dice)
		}
	}
	w.awaitCompaction()
	stop()
	all.Wait()
	w.settle()
	for _, th := range w.threads {
		w.check(th)
	}
	t.Logf(
		"%d kills while the model was thinking, %d compactions, in %v; %v",
		hit,
		w.compactions,
		time.Since(began).Round(time.Second),
		w.counted,
	)
	if hit == 0 || w.compactions == 0 {
		t.Errorf("%d kills while the model was thinking and %d compactions prove nothing", hit, w.compactions)
	}
	if t.Failed() {
		t.Logf(
			"repeat with LOCI_CHAOS_SEED=%d\nfirst server:\n%s\nsecond server:\n%s",
			seed,
			w.servers[0].log,
			w.servers[1].log,
		)
	}
}

// restart kills a server, and starts it again. It returns 1 if the model was thinking, else 0.
func (w *windows) restart(dice *rand.Rand) (hit int) {
	w.t.Helper()
	hit = int(min(1, w.thinking.Load()))
	v := w.servers[dice.IntN(2)]
	v.kill()
	db.Pause(w.t.Context(), time.Duration(dice.IntN(200))*time.Millisecond)
	v.start()
	return hit
}

// awaitCompaction waits until a conversation was compacted. The loops fill all of them.
func (w *windows) awaitCompaction() {
	w.t.Helper()
	for deadline := time.Now().Add(patience); ; {
		compacted, err := db.One[bool](w.t.Context(), w.pool, `SELECT EXISTS (SELECT FROM compactions)`)
		if err != nil {
			w.t.Fatal(err)
		}
		if compacted || time.Now().After(deadline) || !db.Pause(w.t.Context(), 20*time.Millisecond) {
			return
		}
	}
}

func newWindows(t *testing.T, dice *rand.Rand) *windows {
	t.Helper()
	w := &windows{t: t, counted: map[string]int{}}
	address := dbtest.OwnerURL(t)
	args := []string{
		"--database-url=" + address,
		"--llm-base-url=" + w.model(dice.Uint64()).BaseURL(),
		"--llm-model=fake",
		"--log-level=error",
	}
	w.servers = launchTwo(t, args...)
	var err error
	if w.pool, err = db.Connect(t.Context(), address); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.pool.Close)
	p := &program{t: t, base: w.servers[0].url()}
	for i, mode := range []plan.Mode{plan.SlidingWindow, plan.SelfCompactSlidingWindow, plan.All} {
		window := 12_000 + 2_000*i
		agent := call[identified](
			p,
			"POST",
			"/v1/agents",
			map[string]any{"name": "a", "system": "Be kind.", "context_window_limit": window,
				"compaction_settings": map[string]any{"mode": mode}},
		).ID
		w.threads = append(w.threads, &thread{agent: agent, conversation: recall.DefaultConversation, window: window})
		if i == 0 {
			own := call[identified](
				p,
				"POST",
				"/v1/conversations?agent_id="+agent,
				map[string]any{"context_window_limit": 14_000},
			).ID
			w.threads = append(w.threads, &thread{agent: agent, conversation: own, window: 14_000})
		}
	}
	return w
}

// model returns a model that takes up to half a second for an answer, and fails now and then.
func (w *windows) model(seed uint64) *llmtest.Provider {
	p := llmtest.New(w.t)
	var mu sync.Mutex
	dice := rand.New(rand.NewPCG(seed, 5)) //nolint:gosec // repeatable
	faults := []llmtest.Fault{
		llmtest.Fails(),
		llmtest.Empty(),
		llmtest.Garbage(),
		llmtest.Hangup(),
		llmtest.Overflows(llmtest.Wordings[0], 4000, 9000),
	}
	p.Always(func(out http.ResponseWriter, r *http.Request, asked llmtest.Asked) bool {
		w.thinking.Add(1)
		defer w.thinking.Add(-1)
		mu.Lock()
		pause, fault := time.Duration(20+dice.IntN(480))*time.Millisecond, dice.IntN(4*len(faults))
		mu.Unlock()
		return !db.Pause(r.Context(), pause) || fault < len(faults) && faults[fault](out, r, asked)
	})
	return p
}

// asks sends a request to one of the servers. ok is false if there was no answer. An answer must never be a server
// error.
func (w *windows) asks(dice *rand.Rand, action, method, path string, body any) (status int, answer []byte, ok bool) {
	text, err := json.Marshal(body)
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, w.servers[dice.IntN(2)].url()+path, bytes.NewReader(text))
	if err != nil {
		w.t.Error(err)
		return 0, nil, false
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, false
	}
	defer res.Body.Close()
	if answer, err = io.ReadAll(res.Body); err != nil {
		return 0, nil, false
	}
	w.mu.Lock()
	w.counted[fmt.Sprint(action, " ", res.StatusCode)]++
	w.mu.Unlock()
	waits := action == "compacted" && res.Header.Get("Retry-After") != "" ||
		action == "handed out" && othersFill.Match(answer)
	if res.StatusCode >= http.StatusInternalServerError && !waits {
		w.t.Errorf("%s %s: got %d %s", method, path, res.StatusCode, answer)
	}
	return res.StatusCode, answer, !waits
}

// othersFill matches the only reason why there may be no prompt: others fill the window faster than it is compacted.
var othersFill = regexp.MustCompile(`Other requests keep filling the context window`)

// capture stores messages of a thread with any server, until one answers. A caller that does not repeat gives up after
// the first try. Each message has a unique mark in its text.
func (w *windows) capture(
	dice *rand.Rand,
	th *thread,
	again bool,
	usage any,
	messages ...map[string]any,
) (appended []recall.Appended) {
	for _, m := range messages {
		th.mu.Lock()
		th.said++
		mark := fmt.Sprintf("<%s #%d>", th.conversation, th.said)
		th.mu.Unlock()
		m["otid"], m["content"] = mark, mark+" "+fmt.Sprint(m["content"])
	}
	body := map[string]any{"messages": messages, "conversation_id": th.conversation}
	if usage != nil {
		body["usage"] = usage
	}
	for {
		status, answer, ok := w.asks(dice, "captured", "POST", "/v1/agents/"+th.agent+"/messages/capture", body)
		switch {
		case ok && status == http.StatusOK:
			var got struct{ Messages []recall.Appended }
			if err := json.Unmarshal(answer, &got); err != nil || len(got.Messages) != len(messages) {
				w.t.Errorf("%d messages were captured: %s (%v)", len(messages), answer, err)
			}
			return got.Messages
		case ok:
			w.t.Errorf("captured: got %d %s", status, answer)
			return nil
		case !again, !db.Pause(w.t.Context(), 20*time.Millisecond): // the server is gone, and comes back
			return nil
		}
	}
}

// says captures messages of a thread's loop.
func (w *windows) says(dice *rand.Rand, th *thread, usage any, messages ...map[string]any) {
	got := w.capture(dice, th, true, usage, messages...)
	th.mu.Lock()
	defer th.mu.Unlock()
	th.promised = append(th.promised, got...)
}

// loops lets an agent work. The agent gets a request, calls tools, several at once, gets their results one by one or
// together, and answers.
func (w *windows) loops(dice *rand.Rand, th *thread) {
	for turn := 0; w.enough.Err() == nil; turn++ {
		w.says(
			dice,
			th,
			nil,
			map[string]any{
				"role":    "user",
				"content": fmt.Sprintf("Look into /srv/%s/%d.log. %s", th.conversation, turn, prose(dice, 100+dice.IntN(1500))),
			},
		)
		for range dice.IntN(4) {
			usage := w.prompts(dice, th)
			var calls, results []map[string]any
			for range 1 + dice.IntN(3) {
				id := fmt.Sprintf("call_%d", dice.IntN(8)) // ids come again
				if slices.ContainsFunc(calls, func(c map[string]any) bool { return c["id"] == id }) {
					continue
				}
				calls = append(
					calls,
					map[string]any{
						"id":       id,
						"type":     "function",
						"function": map[string]any{"name": "read", "arguments": `{"path":"/srv/x"}`},
					},
				)
				size := 200 + dice.IntN(2500)
				if dice.IntN(15) == 0 {
					size = 15_000 + dice.IntN(20_000)
				}
				results = append(results, map[string]any{"role": "tool", "tool_call_id": id, "content": prose(dice, size)})
			}
			w.says(dice, th, usage, map[string]any{"role": "assistant", "content": "I look.", "tool_calls": calls})
			dice.Shuffle(len(results), func(i, j int) { results[i], results[j] = results[j], results[i] })
			if dice.IntN(2) == 0 {
				w.says(dice, th, nil, results...)
				continue
			}
			for _, r := range results {
				w.says(dice, th, nil, r)
			}
		}
		w.says(dice, th, w.prompts(dice, th), map[string]any{"role": "assistant", "content": prose(dice, 100+dice.IntN(800))})
	}
}

// prose returns text in lines with about chars characters.
func prose(dice *rand.Rand, chars int) string {
	var b strings.Builder
	for b.Len() < chars {
		fmt.Fprintf(&b, "item-%05d is at /var/data/%d and all goes on as it did.\n", dice.IntN(100_000), dice.IntN(1000))
	}
	return b.String()
}

// handed is a prompt that the server returned.
type handed struct {
	Tokens struct{ Total int }
	Window int `json:"context_window"`

	Request struct {
		Messages []struct {
			Role, Content string
			CallID        string `json:"tool_call_id"`
			Calls         []struct {
				ID string
			} `json:"tool_calls"`
		}
	}
}

// prompts asks for a thread's next prompt until there is one, and checks it. For some prompts, it returns the count
// that a provider would report.
func (w *windows) prompts(dice *rand.Rand, th *thread) (usage any) {
	for {
		p, ok := w.prompt(dice, th)
		switch {
		case ok && dice.IntN(2) == 0:
			return map[string]any{"prompt_tokens": p.Tokens.Total + dice.IntN(1+p.Tokens.Total/20), "completion_tokens": 400}
		case ok, !db.Pause(w.t.Context(), 20*time.Millisecond):
			return nil
		}
	}
}

func (w *windows) prompt(dice *rand.Rand, th *thread) (p handed, ok bool) {
	status, answer, ok := w.asks(
		dice,
		"handed out",
		"GET",
		"/v1/agents/"+th.agent+"/prompt?format=openai&conversation_id="+th.conversation,
		nil,
	)
	if !ok {
		return p, false
	}
	if err := json.Unmarshal(answer, &p); status != http.StatusOK || err != nil {
		w.t.Errorf("a prompt of %s: got %d %.500s (%v)", th.conversation, status, answer, err)
		return p, true
	}
	if p.Window != th.window || p.Tokens.Total > p.Window*95/100 {
		w.t.Errorf("a prompt of %s has %d tokens, of %d", th.conversation, p.Tokens.Total, p.Window)
	}
	if err := p.paired(); err != nil {
		w.t.Errorf("a prompt of %s: %v", th.conversation, err)
	}
	return p, true
}

// paired returns an error for prompts that providers would refuse. A system prompt comes first and nowhere else, and no
// answer follows it. Each call is followed by its result before anything else, except the last ones. Each result
// follows its call.
func (p handed) paired() error {
	open := []string{}
	for i, m := range p.Request.Messages {
		if m.Role == "tool" {
			index := slices.Index(open, m.CallID)
			if index < 0 {
				return fmt.Errorf("message %d is a result of no call before it: %.100s", i, m.Content)
			}
			open = slices.Delete(open, index, index+1)
			continue
		}
		if len(open) > 0 {
			return fmt.Errorf("message %d comes before the results of %v", i, open)
		}
		if (i == 0) != (m.Role == "system") && !strings.Contains(m.Content, "This is a message of the system") {
			return fmt.Errorf("message %d is of role %s", i, m.Role)
		}
		for _, c := range m.Calls {
			open = append(open, c.ID)
		}
	}
	return nil
}

// reads reads prompts that no loop uses.
func (w *windows) reads(dice *rand.Rand) {
	for w.enough.Err() == nil {
		w.prompt(dice, w.threads[dice.IntN(len(w.threads))])
		db.Pause(w.enough, time.Duration(dice.IntN(100))*time.Millisecond)
	}
}

// interrupts captures messages while agents work. It ignores failures.
func (w *windows) interrupts(dice *rand.Rand) {
	for w.enough.Err() == nil {
		th := w.threads[dice.IntN(len(w.threads))]
		got := w.capture(
			dice,
			th,
			false,
			nil,
			map[string]any{"role": "user", "content": "By the way: " + prose(dice, 50+dice.IntN(500))},
		)
		th.mu.Lock()
		th.beside = append(th.beside, got...)
		th.mu.Unlock()
		db.Pause(w.enough, time.Duration(dice.IntN(300))*time.Millisecond)
	}
}

// meddles compacts and reverts.
func (w *windows) meddles(dice *rand.Rand) {
	for w.enough.Err() == nil {
		th := w.threads[dice.IntN(len(w.threads))]
		if dice.IntN(3) > 0 {
			body := map[string]any{"agent_id": th.agent, "dry_run": dice.IntN(8) == 0}
			if dice.IntN(3) == 0 {
				body["compaction_settings"] = map[string]any{"mode": "all"}
			}
			status, answer, ok := w.asks(dice, "compacted", "POST", "/v1/conversations/"+th.conversation+"/compact", body)
			if ok && status != http.StatusOK &&
				(status != http.StatusBadRequest || !bytes.Contains(answer, []byte("nothing to compact"))) &&
				status != http.StatusConflict {
				w.t.Errorf("compacting: got %d %s", status, answer)
			}
			if ok && status == http.StatusOK && dice.IntN(2) == 0 { // while it still fits
				w.reverts(dice, th)
			}
		} else {
			w.reverts(dice, th)
		}
		db.Pause(w.enough, time.Duration(dice.IntN(100))*time.Millisecond)
	}
}

func (w *windows) reverts(dice *rand.Rand, th *thread) {
	_, list, ok := w.asks(
		dice,
		"listed",
		"GET",
		"/v1/agents/"+th.agent+"/compactions?limit=5&conversation_id="+th.conversation,
		nil,
	)
	var known []store.Compaction
	if !ok || json.Unmarshal(list, &known) != nil {
		return
	}
	for _, k := range known {
		if k.RevertedAt == nil {
			status, answer, ok := w.asks(dice, "reverted", "POST", "/v1/agents/"+th.agent+"/compactions/"+k.ID+"/revert", nil)
			if ok && status != http.StatusOK && status != http.StatusConflict {
				w.t.Errorf("reverting: got %d %s", status, answer)
			}
			return
		}
	}
}

// settle waits until no job is left, including jobs of killed servers.
func (w *windows) settle() {
	w.t.Helper()
	var work progress
	for {
		left, err := db.All[string](w.t.Context(), w.pool, `
			SELECT row_to_json(j)::text FROM river_job j WHERE state NOT IN ('completed', 'cancelled') ORDER BY id`)
		if err != nil {
			w.t.Fatal(err)
		}
		if len(left) == 0 {
			return
		}
		if work.stalls(len(left)) || !db.Pause(w.t.Context(), 20*time.Millisecond) {
			w.t.Fatalf("none of these jobs has ended for %v:\n%s", recovery, strings.Join(left, "\n"))
		}
	}
}

// logged is a message in the log.
type logged struct {
	ID       string      `db:"id"`
	Seq      int64       `db:"seq"`
	Position int         `db:"position"`
	Tokens   int         `db:"tokens"`
	OTID     *string     `db:"otid"`
	Role     recall.Role `db:"role"`
	Text     string      `db:"text"`
}

// check checks a conversation after all work has ended.
func (w *windows) check(th *thread) {
	w.t.Helper()
	dice := rand.New(rand.NewPCG(1, 1)) //nolint:gosec // chooses servers
	w.prompt(dice, th)                  // makes room, if there is none
	w.settle()
	c, err := recall.New(w.pool, recall.Options{}).Conversation(w.t.Context(), 1, th.agent, th.conversation)
	if err != nil {
		w.t.Fatal(err)
	}
	log, err := db.All[logged](w.t.Context(), w.pool, `
		SELECT 'message-' || id AS id, seq, position, tokens, otid, role, coalesce(content -> 0 ->> 'text', '') AS text
		FROM messages WHERE conversation_key = $1 ORDER BY position`, c.Key)
	if err != nil {
		w.t.Fatal(err)
	}
	w.checkLog(th, log)
	standing := w.checkFrames(th, c)
	p, ok := w.prompt(dice, th)
	if !ok {
		w.t.Fatal("there is no prompt")
	}
	w.checkView(th, c, log, standing, p)
	w.t.Logf(
		"%s of %s: %d messages, %d of them acknowledged, frame %d",
		th.conversation,
		th.agent,
		len(log),
		len(th.promised)+len(th.beside),
		c.Version,
	)
}

// checkLog compares the log with everything that was acknowledged.
func (w *windows) checkLog(th *thread, log []logged) {
	w.t.Helper()
	for i, m := range log {
		if m.Position != i+1 || i > 0 && m.Seq <= log[i-1].Seq {
			w.t.Errorf("%s: message %d is at %d, seq %d", th.conversation, i+1, m.Position, m.Seq)
		}
		if m.OTID != nil && !strings.HasPrefix(m.Text, *m.OTID) {
			w.t.Errorf("%s: %s says %.100q", th.conversation, *m.OTID, m.Text)
		}
	}
	last := 0
	for i, p := range slices.Concat(th.promised, th.beside) {
		if p.Position > len(log) || log[p.Position-1].ID != p.ID || *log[p.Position-1].OTID != *p.OTID {
			w.t.Errorf("%s: %+v was acknowledged, and is not there", th.conversation, p)
		}
		if i < len(th.promised) && p.Position <= last {
			w.t.Errorf("%s: %+v is at or before %d, where what was said before it is", th.conversation, p, last)
		}
		last = p.Position
	}
}

// made is a stored compaction.
type made struct {
	ID        string          `db:"id"`
	Frame     int             `db:"frame"`
	Before    json.RawMessage `db:"before"`
	From      *int            `db:"from_position"`
	To        *int            `db:"to_position"`
	FromSeq   *int64          `db:"from_seq"`
	ToSeq     *int64          `db:"to_seq"`
	SummaryAt *int            `db:"summary_position"`
	Reverted  bool            `db:"reverted"`
}

// checkFrames goes through all changes of a conversation's view in order. It returns the compactions that are in
// effect.
func (w *windows) checkFrames(th *thread, c recall.Conversation) (standing []made) {
	w.t.Helper()
	rows, err := db.All[made](w.t.Context(), w.pool, `
		SELECT id, frame, before, from_position, to_position, from_seq, to_seq, summary_position,
		       reverted_at IS NOT NULL AS reverted
		FROM compactions WHERE conversation_key = $1 ORDER BY frame`, c.Key)
	if err != nil {
		w.t.Fatal(err)
	}
	w.compactions += len(rows)
	byID := map[string]made{}
	for _, k := range rows {
		byID[k.ID] = k
	}
	events, err := db.All[happened](w.t.Context(), w.pool, `
		SELECT seq, type, ref_id, at FROM events
		WHERE agent_id = $1 AND type IN ('compaction', 'compaction_reverted') ORDER BY seq`, th.agent)
	if err != nil {
		w.t.Fatal(err)
	}
	frame, eventCount := 0, 0
	inForce := framed(recall.ContextView{FirstVisible: 1}) // empty if unknown
	for _, e := range events {
		k, ok := byID[e.RefID]
		if !ok {
			continue // another conversation's compaction
		}
		frame++
		var before recall.ContextView
		if err := json.Unmarshal(k.Before, &before); err != nil {
			w.t.Fatal(err)
		}
		if e.Type == string(event.Compacted) {
			if eventCount++; k.Frame != frame || inForce != "" && inForce != framed(before) {
				w.t.Errorf(
					"%s: compaction %s made frame %d of %s, want %d of %s",
					th.conversation,
					k.ID,
					k.Frame,
					framed(before),
					frame,
					inForce,
				)
			}
			standing, inForce = append(standing, k), ""
			continue
		}
		if n := len(standing); n == 0 || standing[n-1].ID != k.ID || !k.Reverted {
			w.t.Fatalf("%s: %s was reverted, and %v stand", th.conversation, k.ID, standing)
		}
		standing, inForce = standing[:len(standing)-1], framed(before)
	}
	if eventCount != len(rows) || c.Version != frame || inForce != "" && inForce != framed(c.ContextView) {
		w.t.Errorf(
			"%s: %d compactions, of which %d were told; frame %d is %s, want %d and %s",
			th.conversation,
			len(rows),
			eventCount,
			c.Version,
			framed(c.ContextView),
			frame,
			inForce,
		)
	}
	if n := len(standing); n > 0 &&
		(standing[n-1].Frame > c.Version || standing[n-1].SummaryAt != nil && *standing[n-1].SummaryAt != *c.SummaryAt) {
		w.t.Errorf("%s: the view is %s, and %+v stands", th.conversation, framed(c.ContextView), standing[n-1])
	}
	return standing
}

// framed returns a frame as text, for comparisons.
func framed(f recall.ContextView) string {
	var clips []clip.Edit
	_ = json.Unmarshal(f.Clipped, &clips)
	summaryAt := 0
	if f.SummaryAt != nil {
		summaryAt = *f.SummaryAt
	}
	return fmt.Sprintf(
		"from %d, with %v, summary at %d, clips %v, %d tokens hidden",
		f.FirstVisible,
		f.Kept,
		summaryAt,
		clips,
		f.HiddenTokens,
	)
}

var expandable = regexp.MustCompile(`expand\(id="([^"]+)"`)

// checkView checks each message of the log. It must be in view, completely or with a place where it can be read, or in
// the range of the current summary.
func (w *windows) checkView(th *thread, c recall.Conversation, log []logged, standing []made, p handed) {
	w.t.Helper()
	var last made
	for _, k := range standing {
		if k.To != nil {
			last = k
		}
	}
	texts := map[string]string{} // texts in view, by mark
	for _, m := range p.Request.Messages {
		text := m.Content
		if _, result, isLate := strings.Cut(text, ", which is not shown any more:"); isLate { // said in a message of its own
			text = strings.TrimSpace(result)
		}
		if mark, _, ok := strings.Cut(text, "> "); ok && strings.HasPrefix(text, "<") {
			if _, twice := texts[mark+">"]; twice {
				w.t.Errorf("%s: %s is in view twice", th.conversation, mark)
			}
			texts[mark+">"] = text
		}
	}
	hidden := ""
	if last.To != nil {
		hidden = w.expanded(th, fmt.Sprintf("[seq %d–%d]", *last.FromSeq, *last.ToSeq))
	}
	for _, m := range log {
		if m.OTID == nil {
			continue // the system prompt, summaries, warnings
		}
		text, seen := texts[*m.OTID]
		leaves := last.To != nil && *last.From <= m.Position && m.Position <= *last.To && !slices.Contains(c.Kept, m.Position)
		switch {
		case seen == leaves:
			shown, _ := json.Marshal(p.Request.Messages)
			w.t.Errorf("%s: message %d, %.80q, is in view (%v), and in the range of the summary (%v); the view is %s, with %s",
				th.conversation, m.Position, m.Text, seen, leaves, framed(c.ContextView), shown)
		case leaves && !strings.Contains(hidden, strings.ReplaceAll(strings.TrimRight(m.Text, "\n"), "\n", "\n  ")):
			w.t.Errorf("%s: message %d is not read by the range of the summary", th.conversation, m.Position)
		case seen && strings.TrimSpace(text) != strings.TrimSpace(m.Text):
			place := expandable.FindStringSubmatch(text)
			if place == nil || !strings.Contains(w.expanded(th, place[1]), m.Text) {
				w.t.Errorf("%s: message %d is clipped, and not read by what it says: %.300s", th.conversation, m.Position, text)
			}
		}
	}
}

// expanded returns everything that a place has.
func (w *windows) expanded(th *thread, id string) string {
	w.t.Helper()
	p := &program{t: w.t, base: w.servers[0].url()}
	all := ""
	for offset := 0; ; {
		e := call[recall.Expansion](
			p,
			"GET",
			fmt.Sprintf("/v1/agents/%s/expand/%s?limit=1000000&offset=%d", th.agent, url.PathEscape(id), offset),
			nil,
		)
		all += e.Text
		if e.NextOffset == nil {
			return all
		}
		offset = *e.NextOffset
	}
}
