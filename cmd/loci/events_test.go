package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/db/dbtest/scale"
	"github.com/loci-memory/loci/db/event"
)

// appendOver appends a unique message to an agent's log over REST, and returns the reference of its event. It is
// idempotent: a caller that got no answer repeats it with the same key.
func appendOver(ctx context.Context, base, agent, key string) (ref string, err error) {
	message := map[string]any{"role": "user", "content": key, "otid": key}
	out, err := ask[struct{ Messages []identified }](ctx, http.MethodPost, base+"/v1/agents/"+agent+"/messages/capture",
		map[string]any{"messages": []any{message}})
	if err != nil {
		return "", err
	}
	return out.Messages[0].ID, nil
}

// ask sends a request to a server that may be killed meanwhile, and decodes the answer.
func ask[T any](ctx context.Context, method, target string, body any) (out T, err error) {
	text, err := json.Marshal(body)
	if err != nil {
		return out, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, target, bytes.NewReader(text))
	if err != nil {
		return out, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return out, err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s %s: status %d: %s", method, target, res.StatusCode, answer)
	}
	if err != nil {
		return out, err
	}
	return out, json.Unmarshal(answer, &out)
}

// happened is an event in the API's form.
type happened struct {
	Seq   int64     `db:"seq"`
	Type  string    `db:"type"`
	RefID string    `json:"ref_id" db:"ref_id"`
	At    time.Time `db:"at"`
}

// ledger is two servers on one database, the acknowledged events, and the events that readers read.
type ledger struct {
	t       *testing.T
	pool    *pgxpool.Pool
	servers []*serverProcess
	agents  []string
	enough  context.Context // ends when writers should stop
	done    context.Context // ends when all writers are done
	written atomic.Pointer[time.Time]

	mu       sync.Mutex
	promised map[string][]string // acknowledged references, by agent
	read     map[string][]happened
}

// Eight writers append through two servers, which are killed in turn at random moments, while readers read. In the end,
// each agent's log has no gap and has each acknowledged event once. Each reader has read every event once, despite its
// broken connections. LOCI_CHAOS_ROUNDS sets how often servers are killed; LOCI_CHAOS_SEED repeats a run.
func TestTheLogOutlivesKilledServers(t *testing.T) {
	scale.Long(t)
	t.Parallel()
	rounds := number(t, "LOCI_CHAOS_ROUNDS", scale.Of(1, 30))
	seed := chaosSeed(t)
	t.Logf("LOCI_CHAOS_SEED=%d LOCI_CHAOS_ROUNDS=%d", seed, rounds)
	dice := rand.New(rand.NewPCG(uint64(seed), 2)) //nolint:gosec // repeatable
	l := newLedger(t)
	enough, stop := context.WithCancel(t.Context())
	done, finish := context.WithCancel(t.Context())
	l.enough, l.done = enough, done
	var writers, readers sync.WaitGroup
	for who := range 8 {
		dice := rand.New(rand.NewPCG(dice.Uint64(), uint64(who))) //nolint:gosec // repeatable
		writers.Go(func() { l.writer(dice, who) })
	}
	for _, agent := range l.agents {
		readers.Go(func() { l.consumes(agent) })
		readers.Go(func() { l.follows(agent) })
	}
	for range rounds {
		db.Pause(t.Context(), time.Duration(50+dice.IntN(600))*time.Millisecond)
		v := l.servers[dice.IntN(2)]
		v.kill()
		db.Pause(t.Context(), time.Duration(dice.IntN(100))*time.Millisecond)
		v.start()
	}
	stop()
	writers.Wait()
	l.written.Store(new(time.Now()))
	finish()
	readers.Wait()
	for _, agent := range l.agents {
		l.check(agent)
	}
	if t.Failed() {
		t.Logf(
			"repeat with LOCI_CHAOS_SEED=%d\nfirst server:\n%s\nsecond server:\n%s",
			seed,
			l.servers[0].log,
			l.servers[1].log,
		)
	}
}

func newLedger(t *testing.T) *ledger {
	t.Helper()
	address := dbtest.OwnerURL(t)
	args := []string{"--database-url=" + address, "--log-level=warn"}
	l := &ledger{t: t, servers: launchTwo(t, args...), promised: map[string][]string{}, read: map[string][]happened{}}
	var err error
	if l.pool, err = db.Connect(t.Context(), address); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.pool.Close)
	for range 3 {
		p := &program{t: t, base: l.servers[0].url()}
		l.agents = append(l.agents, call[identified](p, "POST", "/v1/agents", map[string]any{"name": "a"}).ID)
	}
	return l
}

// server returns the URL of one of the two servers, at random.
func (l *ledger) server(dice *rand.Rand) string { return l.servers[dice.IntN(2)].url() }

// writer appends to the first agent, which all writers share, and to the others, until it is stopped. If there is no
// answer, it tries again with any server, but only half of the time. So the log also has unacknowledged appends.
func (l *ledger) writer(dice *rand.Rand, number int) {
	for n := 0; l.enough.Err() == nil; n++ {
		agent, key := l.agents[max(0, dice.IntN(6)-3)], fmt.Sprintf("append %d-%d", number, n)
		for l.enough.Err() == nil {
			ref, err := appendOver(l.enough, l.server(dice), agent, key)
			if err == nil {
				l.mu.Lock()
				l.promised[agent] = append(l.promised[agent], ref)
				l.mu.Unlock()
				break
			}
			if dice.IntN(2) == 0 {
				break
			}
			db.Pause(l.enough, 20*time.Millisecond) // the server is gone, and comes back
		}
	}
}

// over reports whether all writers are done and a reader has reached the end.
func (l *ledger) over(agent string, last int64) bool {
	if l.done.Err() == nil {
		return false
	}
	head, err := event.Head(l.t.Context(), l.pool, 1, agent)
	if err != nil {
		l.t.Errorf("read the head: %v", err)
	}
	return err != nil || last >= head
}

// tooLate reports whether readers have had enough time to read everything.
func (l *ledger) tooLate() bool {
	written := l.written.Load()
	return written != nil && time.Since(*written) > patience
}

func (l *ledger) note(reader string, events ...happened) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.read[reader] = append(l.read[reader], events...)
}

// consumes reads as a named consumer, which remembers only its name. It repeats a commit that got no answer.
func (l *ledger) consumes(agent string) {
	dice := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // chooses servers
	for last := int64(0); !l.over(agent, last) && !l.tooLate(); {
		page, err := ask[[]happened](
			l.t.Context(),
			http.MethodGet,
			l.server(dice)+"/v1/agents/"+agent+"/events?consumer=reader&limit=7",
			nil,
		)
		if err != nil || len(page) == 0 {
			db.Pause(l.t.Context(), 5*time.Millisecond)
			continue
		}
		for last = page[len(page)-1].Seq; !l.tooLate(); db.Pause(l.t.Context(), 5*time.Millisecond) {
			_, err := ask[any](
				l.t.Context(),
				http.MethodPut,
				l.server(dice)+"/v1/agents/"+agent+"/consumers/reader",
				map[string]any{"seq": last},
			)
			if err == nil {
				l.note("consumer of "+agent, page...)
				break
			}
		}
	}
}

// follows reads streams. Each continues where the previous one broke off.
func (l *ledger) follows(agent string) {
	dice := rand.New(rand.NewPCG(3, 4)) //nolint:gosec // chooses servers
	for last := int64(0); !l.over(agent, last) && !l.tooLate(); {
		ctx, cancel := context.WithTimeout(l.t.Context(), patience)
		if l.done.Err() == nil {
			context.AfterFunc(l.done, cancel)
		}
		err := stream(ctx, l.server(dice)+"/v1/agents/"+agent+"/events/stream", last, func(e happened) bool {
			l.note("stream of "+agent, e)
			last = e.Seq
			return !l.over(agent, last)
		})
		cancel()
		if err != nil {
			db.Pause(l.t.Context(), 5*time.Millisecond)
		}
	}
}

// stream passes the events of a stream after last to take, until the stream breaks off or take returns false.
func stream(ctx context.Context, target string, last int64, take func(happened) bool) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Last-Event-ID", fmt.Sprint(last))
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d", res.StatusCode)
	}
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 1<<20)
	block := false // an event without its end does not count
	var e happened
	for lines.Scan() {
		text, ok := strings.CutPrefix(lines.Text(), "data: ")
		switch {
		case ok:
			block = json.Unmarshal([]byte(text), &e) == nil
		case lines.Text() == "" && block:
			block = false
			if !take(e) {
				return nil
			}
		}
	}
	return errors.Join(lines.Err(), io.EOF)
}

// check checks an agent's log, and compares it with the acknowledged events and the read events.
func (l *ledger) check(agent string) {
	l.t.Helper()
	log, err := db.All[happened](
		l.t.Context(),
		l.pool,
		`SELECT seq, type, ref_id, at FROM events WHERE agent_id = $1 ORDER BY seq`,
		agent,
	)
	if err != nil {
		l.t.Fatal(err)
	}
	times := map[string]int{} // how often each reference occurs
	for i, e := range log {
		times[e.RefID]++
		if e.Seq != int64(i+1) || i > 0 && e.At.Before(log[i-1].At) {
			l.t.Errorf("%s: event %d is %+v", agent, i+1, e)
		}
		if e.Type != string(event.AgentCreated) && times[e.RefID] > 1 {
			l.t.Errorf("%s: %+v was appended %d times", agent, e, times[e.RefID])
		}
	}
	for _, ref := range l.promised[agent] {
		if times[ref] != 1 {
			l.t.Errorf("%s: %s was acknowledged and is there %d times", agent, ref, times[ref])
		}
	}
	for _, reader := range []string{"consumer of " + agent, "stream of " + agent} {
		micros := cmp.Transformer("at", func(at time.Time) int64 { return at.UnixMicro() })
		if diff := cmp.Diff(log, l.read[reader], micros); diff != "" {
			l.t.Errorf("%s (-log +read):\n%s", reader, diff)
		}
	}
	l.t.Logf("%s: %d events, %d of them acknowledged", agent, len(log), len(l.promised[agent]))
	if len(l.promised[agent]) == 0 {
		l.t.Errorf("%s: nothing was appended", agent)
	}
}
