package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/loci-memory/loci/embed/lexicon"
)

// history measures the log of messages: appends to a long log and to a short one, reads of the view, and searches.
func (b *bench) history(ctx context.Context) error {
	home := filepath.Join(b.work, "history")
	err := b.during(ctx, home, func(s *instance, pool *pgxpool.Pool) error { return b.historyOf(ctx, s, pool) })
	return errors.Join(err, os.RemoveAll(home))
}

// shortHistory is the number of messages in a short log.
const shortHistory = 1000

// inView is the number of messages of a conversation that the model sees.
const inView = 100

func (b *bench) historyOf(ctx context.Context, s *instance, pool *pgxpool.Pool) error {
	h := &historian{bench: b, instance: s, pool: pool, talk: b.newTalk()}
	if err := h.appends(ctx); err != nil {
		return fmt.Errorf("append: %w", err)
	}
	single := Row{What: fmt.Sprintf("conversation_search in an agent of %d messages: p50 of 1 client", b.History),
		Unit:   "ms",
		AtMost: 150}
	if err := h.searches(ctx, &single, 1, b.History); err != nil {
		return err
	}
	several := Row{What: fmt.Sprintf("conversation_search in %d agents of %d messages: p50 of 1 client",
		b.History/shortHistory, shortHistory), Unit: "ms", AtMost: 20}
	if err := h.searches(ctx, &several, b.History/shortHistory, shortHistory); err != nil {
		return err
	}
	b.report.add(single, several)
	return nil
}

// historian writes and reads histories.
type historian struct {
	*bench
	*instance
	pool *pgxpool.Pool
	*talk
}

// log is an agent's default conversation.
type log struct {
	agent             string
	key, conversation int64
}

func (h *historian) newLog(ctx context.Context, name string) (l log, err error) {
	var a named
	if err := h.call(ctx, http.MethodPost, "/v1/agents/", agentNamed(name), &a); err != nil {
		return l, err
	}
	l.agent = a.ID
	err = h.pool.QueryRow(ctx, `
		SELECT a.key, c.key
		FROM agents a JOIN conversations c ON c.org = a.org AND c.agent_key = a.key AND c.is_default
		WHERE a.org = $1 AND a.id = $2`, benchOrg, a.ID).
		Scan(&l.key, &l.conversation)
	return l, err
}

// fill copies messages to the end of a log until it has total messages, in sessions of forty a day.
func (h *historian) fill(ctx context.Context, l log, total int) error {
	var have int
	if err := h.pool.QueryRow(ctx, `SELECT messages FROM conversations WHERE org = $1 AND key = $2`,
		benchOrg, l.conversation).Scan(&have); err != nil {
		return err
	}
	var seq int64
	if err := h.pool.QueryRow(ctx, `SELECT seq FROM agent_heads WHERE org = $1 AND agent_id = $2`,
		benchOrg, l.agent).Scan(&seq); err != nil {
		return err
	}
	position, session := have, have+1
	var events [][]any
	rows := pgx.CopyFromFunc(func() ([]any, error) {
		if position >= total { // measured appends may have exceeded it
			return nil, nil
		}
		position++
		seq++
		if position-session >= 40 {
			session = position
		}
		text, id, created := h.sentence(), uuid.New(), time.Unix(1_600_000_000,
			0).Add(time.Duration(position/40)*24*time.Hour+time.Duration(position%40)*time.Minute)
		lex := lexicon.Document(text)
		terms := make([]int64, len(lex.Terms))
		for i, t := range lex.Terms {
			terms[i] = l.key<<24 | int64(t)
		}
		events = append(events, []any{l.agent, seq, benchOrg, "message", "message-" + id.String(), created})
		role := []string{"user", "assistant"}[position%2]
		return []any{id, benchOrg, l.key, seq, l.conversation, position, session, role,
			fmt.Sprintf(`[{"type":"text","text":%q}]`, text),
			len(text)/4 + 4, created, lex.Vector, terms}, nil
	})
	return pgx.BeginFunc(ctx, h.pool, func(tx pgx.Tx) error {
		if _, err := tx.CopyFrom(ctx, pgx.Identifier{"messages"}, []string{"id", "org", "agent_key", "seq",
			"conversation_key", "position",
			"session", "role", "content", "tokens", "created_at", "lex", "terms"}, rows); err != nil {
			return err
		}
		if _, err := tx.CopyFrom(ctx, pgx.Identifier{"events"}, []string{"agent_id", "seq", "org", "type", "ref_id", "at"},
			pgx.CopyFromRows(events)); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `
			WITH head AS (UPDATE agent_heads SET seq = $2 WHERE org = $7 AND agent_id = $1)
			UPDATE conversations
			SET messages = $4, first_visible = greatest($4::integer - $5::integer, 1), session = $6, session_at = now(),
			    last_message_at = now()
			WHERE org = $7 AND key = $3`, l.agent, seq, l.conversation, total, inView, session, benchOrg)
		return err
	})
}

// settle vacuums and analyzes the copied rows, as autovacuum would have done over time.
func (h *historian) settle(ctx context.Context) error {
	for _, sql := range []string{`VACUUM ANALYZE messages`, `VACUUM ANALYZE conversations`, `VACUUM ANALYZE events`,
		`CHECKPOINT`} {
		if _, err := h.pool.Exec(ctx, sql); err != nil {
			return err
		}
	}
	syscall.Sync() // otherwise later measurements would include pending disk writes
	return nil
}

// appends measures appends and reads of the view with short histories, and then with long ones.
func (h *historian) appends(ctx context.Context) error {
	logs := make([]log, manyClients)
	for i := range logs {
		var err error
		if logs[i], err = h.newLog(ctx, "append-"+strconv.Itoa(i)); err != nil {
			return err
		}
	}
	long := Row{What: fmt.Sprintf("append, %d clients on as many agents: p50 at %d messages of history", manyClients,
		h.History), Unit: "ms", AtMost: 1.2,
		Versus: fmt.Sprintf("at %d", manyClients*shortHistory)}
	view := Row{What: fmt.Sprintf("what a conversation has in view (%d messages): p50 at %d messages of history", inView,
		h.History), Unit: "ms", AtMost: 1.2,
		Versus: long.Versus}
	script := Row{What: fmt.Sprintf("the same append: throughput of %d clients", manyClients), Unit: "/s", AtLeast: 0.5,
		Versus: "its statements in a transaction by pgbench -M prepared"}
	bare := Row{What: "the same, beside an INSERT alone", Unit: "/s", Versus: "one INSERT by pgbench -M prepared"}
	short, err := h.measure(ctx, logs, shortHistory)
	if err != nil {
		return err
	}
	grown, err := h.measure(ctx, logs, h.History/manyClients)
	if err != nil {
		return err
	}
	long.measured(grown.append.p50()*1e3, short.append.p50()*1e3)
	view.measured(grown.view.p50()*1e3, short.view.p50()*1e3)
	for _, row := range []*Row{&long, &view} {
		row.settle(median)
	}
	h.report.add(long, view)
	if h.tool("pgbench") == "" {
		h.report.skip("pgbench is not installed", script, bare)
		return nil
	}
	for row, sql := range map[*Row]string{&script: appendScript, &bare: insertScript} {
		rate, err := h.runScript(ctx, logs, sql)
		if err != nil {
			return err
		}
		row.measured(grown.append.rate(), rate)
		row.settle(median)
	}
	h.report.add(script, bare)
	return nil
}

type measured struct{ append, view latencies }

func (h *historian) measure(ctx context.Context, logs []log, messages int) (m measured, err error) {
	for _, l := range logs {
		if err := h.fill(ctx, l, messages); err != nil {
			return m, err
		}
	}
	if err := h.settle(ctx); err != nil {
		return m, err
	}
	texts := make([]string, 1000)
	for i := range texts {
		texts[i] = h.sentence()
	}
	if m.view, err = repeat(ctx, 1, h.SearchFor, func(_, n int) error {
		return h.call(ctx, http.MethodGet, "/v1/agents/"+logs[n%len(logs)].agent+"/context", nil, nil)
	}); err != nil {
		return m, err
	}
	m.append, err = repeat(ctx, manyClients, 2*h.SearchFor, func(client, n int) error {
		return h.call(ctx, http.MethodPost, "/v1/agents/"+logs[client].agent+"/messages/capture",
			map[string]any{"messages": []any{map[string]string{"role": "user", "content": texts[(client*100+n)%len(texts)]}}},
			nil)
	})
	say("append at %d messages: p50 %.2f ms, %.0f/s; view: p50 %.2f ms", messages*len(logs), m.append.p50()*1e3,
		m.append.rate(), m.view.p50()*1e3)
	return m, err
}

// runScript runs a script with pgbench, with one agent for each client. It returns the transactions per second.
func (h *historian) runScript(ctx context.Context, logs []log, sql string) (float64, error) {
	dir := filepath.Join(h.work, "replay")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "append.sql")
	if err := os.WriteFile(path, []byte(sql), 0o644); err != nil {
		return 0, err
	}
	url, err := h.postgres()
	if err != nil {
		return 0, err
	}
	text := h.sentence()
	lex := lexicon.Document(text)
	p := pgbench{program: h.tool("pgbench"), url: url, dir: dir, scripts: []string{path}, plans: "auto"}
	for name, value := range map[string]string{"lex": printed(lex),
		"content": fmt.Sprintf(`[{"type":"text","text":%q}]`, text),
		"tokens":  strconv.Itoa(len(text)/4 + 4), "first": strconv.FormatInt(logs[0].key, 10), "terms": arrayOf(lex.Terms)} {
		p.variables = append(p.variables, "-D", name+"="+value)
	}
	if _, err := p.run(ctx, manyClients, h.SearchFor); err != nil { // warms up, because the server was warm too
		return 0, err
	}
	l, err := p.run(ctx, manyClients, 2*h.SearchFor)
	return l.rate(), err
}

// printed returns a vector in Postgres' text format.
func printed(lex lexicon.Lex) string {
	parts := make([]string, len(lex.Terms))
	for i, v := range lex.Vector.Values() {
		parts[i] = fmt.Sprintf("%d:%g", lex.Terms[i]+1, v)
	}
	return fmt.Sprintf("{%s}/%d", strings.Join(parts, ","), lexicon.Lexicon)
}

func arrayOf(terms []int32) string {
	parts := make([]string, len(terms))
	for i, t := range terms {
		parts[i] = strconv.Itoa(int(t))
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// insertScript inserts a message at a position that no other message has.
const insertScript = `\set agent :first + :client_id
INSERT INTO messages (id, org, agent_key, seq, conversation_key, position, session, role, content, is_err, tokens,
                      created_at, lex, terms)
SELECT gen_random_uuid(), 1, c.agent_key, n, c.key, -1 - (n % 2000000000)::int, 1, 'user', :content::json, false,
       :tokens::int, now(), :lex::sparsevec,
       (SELECT array_agg((:agent::bigint << 24) | t) FROM unnest(:terms::int[]) AS t)
FROM (SELECT 1000000000 + (random() * 1e15)::bigint AS n) place
JOIN conversations c ON c.org = 1 AND c.agent_key = :agent::bigint AND c.is_default
ON CONFLICT DO NOTHING;
`

// appendScript runs the statements that the server runs to append a message.
const appendScript = `\set agent :first + :client_id
BEGIN;
SELECT c.key AS conversation, c.messages + 1 AS position, c.session, a.id AS agent_id
FROM conversations c JOIN agents a ON a.org = c.org AND a.key = c.agent_key
WHERE c.org = 1 AND c.deleted_at IS NULL AND a.key = :agent::bigint AND c.is_default
FOR UPDATE OF c \gset
SELECT gen_random_uuid() AS id \gset
WITH added AS (
	SELECT agent_id, type, ref_id, ord,
	       row_number() OVER (PARTITION BY agent_id ORDER BY ord) AS n,
	       count(*) OVER (PARTITION BY agent_id) AS total
	FROM unnest(ARRAY[:agent_id::text], ARRAY['message'], ARRAY['message-' || :id::text])
	     WITH ORDINALITY AS e (agent_id, type, ref_id, ord)
), heads AS (
	INSERT INTO agent_heads AS h (org, agent_id, seq)
	SELECT 1, agent_id, count(*) FROM added GROUP BY agent_id ORDER BY agent_id
	ON CONFLICT (org, agent_id) DO UPDATE SET seq = h.seq + excluded.seq
	RETURNING agent_id, seq
), written AS (
	INSERT INTO events (org, agent_id, seq, type, ref_id, at)
	SELECT 1, a.agent_id, h.seq - a.total + a.n, a.type, a.ref_id, clock_timestamp()
	FROM added a JOIN heads h USING (agent_id)
	RETURNING agent_id, seq, type, ref_id, at
)
SELECT w.seq FROM written w \gset
INSERT INTO messages (id, org, agent_key, seq, conversation_key, position, session, role, content, is_err, tokens,
                      created_at, lex, terms)
VALUES (:id, 1, :agent, :seq, :conversation, :position, :session, 'user', :content, false, :tokens, now(), :lex,
        (SELECT array_agg((:agent::bigint << 24) | t) FROM unnest(:terms::int[]) AS t));
UPDATE conversations
SET messages = :position, tokens = tokens + :tokens, session = :session, session_at = now(),
    last_message_at = greatest(last_message_at, now()), unembedded = true
WHERE org = 1 AND key = :conversation;
COMMIT;
`

// searches measures searches in a number of agents, each with a number of messages.
func (h *historian) searches(ctx context.Context, row *Row, agents, messages int) error {
	logs := make([]log, agents)
	for i := range logs {
		var err error
		if logs[i], err = h.newLog(ctx, fmt.Sprintf("search-%d-%d", agents, i)); err != nil {
			return err
		}
		if err := h.fill(ctx, logs[i], messages); err != nil {
			return err
		}
	}
	if err := h.settle(ctx); err != nil {
		return err
	}
	queries := make([]string, h.Queries)
	for i := range queries {
		queries[i] = "what was said about " + h.words[100+h.rand.IntN(2000)] + " and " + h.words[20+h.rand.IntN(20_000)]
	}
	search := func(_, n int) error {
		_, err := h.instance.tool(ctx, logs[n*7919%len(logs)].agent, "conversation_search",
			map[string]any{"query": queries[n%len(queries)]})
		return err
	}
	if _, err := repeat(ctx, 1, h.SearchFor, search); err != nil {
		return err
	}
	l, err := repeat(ctx, 1, 2*h.SearchFor, search)
	if err != nil {
		return err
	}
	row.measured(l.p50()*1e3, 0)
	row.Against = Side{}
	row.settle(median)
	say("%s: %.2f ms", row.What, l.p50()*1e3)
	return nil
}
