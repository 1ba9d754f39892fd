package lettadb

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/server/agentfile"
)

// conversation is a conversation at the source. An agent's messages without one are in its default conversation.
type conversation struct {
	row
	Summary  *string
	Model    *string
	Settings json.RawMessage `json:"model_settings"`
}

// message is a message at the source, without its contents.
type message struct {
	row
	Conversation *string `json:"conversation_id"`
	Role         string
	OTID         *string
	StepID       *string `json:"step_id"`
	RunID        *string `json:"run_id"`
	IsErr        *bool   `json:"is_err"`
}

// history is what an import knows of an agent's messages, without their contents.
type history struct {
	drafts        *agentfile.LettaMessages
	rows          int // messages that are to be imported
	conversations []string

	imported, left map[string]int // rows, by tables
}

func (h *history) reset() { h.imported, h.left = map[string]int{}, map[string]int{} }

func (h *history) count(report *builder) {
	for table, n := range h.imported {
		report.table(table).Imported += n
	}
	for table, n := range h.left {
		report.table(table).LeftOut += n
	}
}

// messagesSQL selects the messages of an agent. Older servers kept a text in place of contents.
const messagesSQL = `
	SELECT m.*, coalesce(m.content, CASE WHEN m.text IS NOT NULL
		THEN json_build_array(json_build_object('type', 'text', 'text', m.text)) END) AS content
	FROM messages m WHERE agent_id = $1 ORDER BY sequence_id`

// note reads the messages of an agent, counts them, and keeps what drafts of them need.
func (r *run) note(ctx context.Context, a lettaAgent, conversations []conversation) (*history, error) {
	h := &history{drafts: agentfile.NewLettaMessages()}
	for _, c := range conversations {
		h.conversations = append(h.conversations, c.ID)
	}
	for raw, err := range r.from.read(ctx, messagesSQL, a.ID) {
		if err != nil {
			return nil, err
		}
		r.report.read("messages", raw)
		if m, skip := h.of(raw); skip {
			r.report.table("messages").Deleted++
		} else if _, err := h.drafts.Note(raw); err != nil {
			r.report.note("message %s: it is kept as a text. %v", m.ID, err)
		}
	}
	h.rows = h.drafts.Len()
	return h, nil
}

// of reads a message. skip reports that it, or its conversation, is deleted.
func (h *history) of(raw json.RawMessage) (m message, skip bool) {
	_ = json.Unmarshal(raw, &m) // columns have their types
	return m, m.IsDeleted || m.Conversation != nil && !slices.Contains(h.conversations, *m.Conversation)
}

// history stores the conversations of an agent with their messages.
func (r *run) history(ctx context.Context, a lettaAgent, has attached, h *history) error {
	stored, err := r.Agents.Agent(ctx, r.org, a.ID)
	if err != nil {
		return err
	}
	prompt, err := r.Agents.SystemPrompt(ctx, r.org, stored)
	if err != nil {
		return err
	}
	w := &writer{run: r, agent: a, history: h, prompt: prompt, threads: map[string]*thread{}, otids: map[string]bool{}}
	own := &thread{id: "conv-" + derived(a.ID, "default")}
	if a.MessageIDs != nil {
		own.sees(*a.MessageIDs)
	}
	w.threads[""] = own
	if err := w.begin(ctx, recall.PortableConversation{ID: own.id, IsDefault: true, CreatedAt: a.created()}); err != nil {
		return err
	}
	for _, c := range has.conversations {
		of := &thread{id: c.ID}
		if err := r.contextOf(ctx, of); err != nil {
			return err
		}
		w.threads[c.ID] = of
		if err := w.begin(ctx, recall.PortableConversation{ID: c.ID, Summary: note(c.Summary), Model: cleanText(c.Model),
			ModelSettings: object(c.Settings), CreatedAt: c.created()}); err != nil {
			return err
		}
	}
	h.imported["conversations"] = len(has.conversations)
	if err := w.write(ctx); err != nil {
		return err
	}
	if err := w.finish(ctx, own); err != nil {
		return err
	}
	for _, c := range has.conversations {
		if err := w.finish(ctx, w.threads[c.ID]); err != nil {
			return err
		}
	}
	return nil
}

// note returns a note of a conversation, cut to the length that one may have.
func note(text *string) *string {
	if text == nil {
		return nil
	}
	return new(db.Beginning(db.Clean(*text), 4000))
}

// writer stores the messages of an agent in the order in which they were said.
type writer struct {
	*run
	agent   lettaAgent
	history *history
	prompt  string
	threads map[string]*thread // by the ids of conversations; "" is the default one
	otids   map[string]bool
	said    time.Time // when the message before was said
	seq     int64     // of the message before

	page  []recall.Draft // of one conversation, to be stored together
	of    *thread        // of the page
	bytes int
}

// Bounds of the messages that are stored together.
const (
	messagesAtOnce = 500
	bytesAtOnce    = 8 << 20
)

func (w *writer) begin(ctx context.Context, c recall.PortableConversation) error {
	c.AgentID = w.agent.ID
	return w.Agents.Recall.RestoreConversation(ctx, w.org, c)
}

func (w *writer) write(ctx context.Context) error {
	n := 0
	for raw, err := range w.from.read(ctx, messagesSQL, w.agent.ID) {
		if err != nil {
			return err
		}
		m, skip := w.history.of(raw)
		if skip {
			continue
		}
		of := w.threads[""]
		if m.Conversation != nil {
			of = w.threads[*m.Conversation]
		}
		d, ok := w.draft(n, m, raw)
		if n++; !ok {
			continue
		}
		if err := w.add(ctx, of, m.ID, d, len(raw)); err != nil {
			return err
		}
	}
	return w.flush(ctx)
}

// draft returns what a message becomes; ok is false if it is left out. What has another form than Letta's is kept as a
// text.
func (w *writer) draft(n int, m message, raw json.RawMessage) (d recall.Draft, ok bool) {
	d, why, err := w.history.drafts.Draft(n, raw)
	if err == nil && len(d.Content) == 0 && d.Role == recall.Tool {
		w.history.left["messages"]++
		w.report.note("message %s: left out. %s", m.ID, cmp.Or(why, "Its answers are with the results of the calls."))
		return d, false
	}
	d.StepID, d.RunID, d.IsErr = m.StepID, m.RunID, m.IsErr != nil && *m.IsErr
	w.own(&d, m)
	if err == nil {
		err = d.Check()
	}
	if err != nil {
		w.report.note("message %s: it is kept as a text. %v", m.ID, err)
		d = recall.Draft{Role: recall.User, Content: pieces(raw)}
		if recall.Role(m.Role) == recall.System || recall.Role(m.Role) == recall.Assistant {
			d.Role = recall.Role(m.Role)
		}
		w.own(&d, m)
	}
	w.history.imported["messages"]++
	return d, true
}

// own gives a draft the id and the time of its message, and its otid, unless an earlier message has it.
func (w *writer) own(d *recall.Draft, m message) {
	d.ID = m.ID
	if db.UUID("message-", m.ID) == uuid.Nil {
		d.ID = "message-" + derived(w.agent.ID, m.ID)
		w.report.note("message %s: its id is not message- and a UUID, and became %s.", m.ID, d.ID)
	}
	if d.OTID != nil && (*d.OTID == "" || w.otids[*d.OTID]) {
		d.OTID = nil
	} else if d.OTID != nil {
		w.otids[*d.OTID] = true
	}
	at := m.created()
	if m.CreatedAt == nil && !w.said.IsZero() {
		at = w.said
	}
	if now := time.Now(); at.After(now) {
		at = now
	} else if at.Year() < 1900 {
		at = time.Unix(0, 0).UTC()
	}
	d.CreatedAt, w.said = &at, at
}

// pieces returns the parts of a text, each as long as a part may be.
func pieces(raw json.RawMessage) (parts []recall.Part) {
	text := string(raw)
	for len(text) > 0 {
		n := min(len(text), recall.MaxPartBytes)
		for n < len(text) && !utf8.RuneStart(text[n]) {
			n--
		}
		parts = append(parts, recall.Part{Type: recall.Text, Text: text[:n]})
		text = text[n:]
	}
	return parts
}

// add adds a message to the page. A conversation begins with a system prompt.
func (w *writer) add(ctx context.Context, of *thread, id string, d recall.Draft, bytes int) error {
	if w.of != of || len(w.page) >= messagesAtOnce || w.bytes >= bytesAtOnce {
		if err := w.flush(ctx); err != nil {
			return err
		}
		w.of = of
	}
	if of.count == 0 && d.Role != recall.System {
		of.own = true
		w.place(of, "", w.instructions(*d.CreatedAt), true)
	}
	w.place(of, id, d, false)
	w.bytes += bytes
	return nil
}

// instructions returns the system prompt as Loci compiles it.
func (w *writer) instructions(at time.Time) recall.Draft {
	return recall.Draft{Role: recall.System, CreatedAt: &at, Content: []recall.Part{{Type: recall.Text, Text: w.prompt}}}
}

// place gives a draft the next position of a conversation. Letta's system messages are earlier system prompts, but for
// those that the model sees after the first.
func (w *writer) place(of *thread, id string, d recall.Draft, own bool) {
	of.count++
	w.seq++
	d = of.summarized(d)
	seen := of.context == nil || of.context[id]
	isPrompt := own || d.Role == recall.System && (of.count == 1 || !seen || id == of.first)
	if isPrompt {
		of.prompts = append(of.prompts, of.count)
	}
	if d.Role == recall.Summary && of.context[id] {
		of.summary = new(of.count)
	}
	ordinary := !isPrompt && d.Role != recall.Summary && !d.IsErr
	of.ordinary, of.seen, of.last = append(of.ordinary, ordinary), append(of.seen, seen), *d.CreatedAt
	if ordinary && !seen {
		of.hidden.To, of.hidden.ToSeq = of.count, w.seq
		of.hidden.From, of.hidden.FromSeq = cmp.Or(of.hidden.From, of.count), cmp.Or(of.hidden.FromSeq, w.seq)
	}
	w.page = append(w.page, d)
}

func (w *writer) flush(ctx context.Context) error {
	if len(w.page) == 0 {
		return nil
	}
	err := w.Agents.Recall.AppendAll(ctx, w.org, w.agent.ID, w.of.id, w.page)
	w.page, w.bytes = nil, 0
	if err != nil {
		return fmt.Errorf("messages of conversation %s: %w", w.of.id, err)
	}
	return nil
}

// finish gives a conversation its present system prompt and its view.
func (w *writer) finish(ctx context.Context, of *thread) error {
	if of.last.IsZero() {
		of.last = w.agent.created()
	}
	if !of.own {
		w.of = of
		w.place(of, "", w.instructions(of.last), true)
		if err := w.flush(ctx); err != nil {
			return err
		}
	}
	v := recall.View{FirstVisible: of.count + 1, Kept: []int{}, SummaryAt: of.summary, Clipped: json.RawMessage(`[]`)}
	p := of.count
	for ; p > 0 && (of.seen[p-1] || !of.ordinary[p-1]); p-- {
		if of.ordinary[p-1] {
			v.FirstVisible = p
		}
	}
	for k := 1; k < v.FirstVisible; k++ {
		if of.ordinary[k-1] && of.seen[k-1] {
			v.Kept = append(v.Kept, k)
		}
	}
	return w.Agents.Recall.RestoreView(ctx, w.org, of.id, v, of.prompts)
}
