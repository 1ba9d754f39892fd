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

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/server/agentfile"
)

// conversation is a conversation in Letta's database. Messages without one belong to the agent's default conversation.
type conversation struct {
	row
	Summary  *string
	Model    *string
	Settings json.RawMessage `json:"model_settings"`
}

// message is a message in Letta's database, without its content.
type message struct {
	row
	Conversation *string `json:"conversation_id"`
	Role         string
	OTID         *string
	StepID       *string `json:"step_id"`
	RunID        *string `json:"run_id"`
	IsErr        *bool   `json:"is_err"`
}

// history is what the import knows about an agent's messages, without their contents.
type history struct {
	drafts        *agentfile.LettaMessages
	rows          int // number of messages to import
	conversations []string

	imported, left map[string]int // numbers of rows by table
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

// messagesSQL selects an agent's messages. Older servers stored a text instead of content.
const messagesSQL = `
	SELECT m.*, coalesce(m.content, CASE WHEN m.text IS NOT NULL
		THEN json_build_array(json_build_object('type', 'text', 'text', m.text)) END) AS content
	FROM messages m WHERE agent_id = $1 ORDER BY sequence_id`

// note reads an agent's messages, counts them, and keeps what is needed to turn them into drafts.
func (r *run) note(ctx context.Context, a lettaAgent, conversations []conversation) (*history, error) {
	zone := agent.Agent{Timezone: timezone(a)}.Zone()
	h := &history{drafts: agentfile.NewLettaMessages(*cmp.Or(a.Type, new("")), zone)}
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

// of decodes a message. skip reports that the message or its conversation is deleted.
func (h *history) of(raw json.RawMessage) (m message, skip bool) {
	_ = json.Unmarshal(raw, &m) // the columns have these types
	return m, m.IsDeleted || m.Conversation != nil && !slices.Contains(h.conversations, *m.Conversation)
}

// history stores an agent's conversations, with their messages.
func (r *run) history(ctx context.Context, a lettaAgent, attachments attached, h *history) error {
	stored, err := r.Agents.Agent(ctx, r.org, a.ID)
	if err != nil {
		return err
	}
	prompt, err := r.Agents.SystemPrompt(ctx, r.org, stored)
	if err != nil {
		return err
	}
	w := &writer{run: r, agent: a, history: h, prompt: prompt, threads: map[string]*thread{}, otids: map[string]bool{}}
	defaultThread := &thread{id: "conv-" + derived(a.ID, "default")}
	if a.MessageIDs != nil {
		defaultThread.sees(*a.MessageIDs)
	}
	w.threads[""] = defaultThread
	if err := w.begin(ctx, recall.PortableConversation{ID: defaultThread.id, IsDefault: true,
		CreatedAt: a.created()}); err != nil {
		return err
	}
	for _, c := range attachments.conversations {
		conversationThread := &thread{id: c.ID}
		if err := r.contextOf(ctx, conversationThread); err != nil {
			return err
		}
		w.threads[c.ID] = conversationThread
		if err := w.begin(ctx, recall.PortableConversation{ID: c.ID, Summary: note(c.Summary), Model: cleanText(c.Model),
			ModelSettings: object(c.Settings), CreatedAt: c.created()}); err != nil {
			return err
		}
	}
	h.imported["conversations"] = len(attachments.conversations)
	if err := w.write(ctx); err != nil {
		return err
	}
	if err := w.finish(ctx, defaultThread); err != nil {
		return err
	}
	for _, c := range attachments.conversations {
		if err := w.finish(ctx, w.threads[c.ID]); err != nil {
			return err
		}
	}
	return nil
}

// note returns the note of a conversation, cut to the allowed length.
func note(text *string) *string {
	if text == nil {
		return nil
	}
	return new(db.Beginning(db.Clean(*text), 4000))
}

// writer stores an agent's messages in the order in which they were said.
type writer struct {
	*run
	agent   lettaAgent
	history *history
	prompt  string
	threads map[string]*thread // by conversation id; "" is the default conversation
	otids   map[string]bool
	said    time.Time // time of the previous message
	seq     int64     // seq of the previous message

	page  []recall.Draft // messages of one conversation, to be stored together
	of    *thread        // the conversation of page
	bytes int
}

// Bounds on the messages that are stored together.
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
		target := w.threads[""]
		if m.Conversation != nil {
			target = w.threads[*m.Conversation]
		}
		d, ok := w.draft(n, m, raw)
		if n++; !ok {
			continue
		}
		if err := w.add(ctx, target, m.ID, d, len(raw)); err != nil {
			return err
		}
	}
	return w.flush(ctx)
}

// draft returns the draft for a message; ok is false if the message is left out. A message that does not have Letta's
// form is kept as text.
func (w *writer) draft(n int, m message, raw json.RawMessage) (d recall.Draft, ok bool) {
	d, reason, err := w.history.drafts.Draft(n, raw)
	if err == nil && len(d.Content) == 0 && d.Role == recall.Tool {
		w.history.left["messages"]++
		w.report.note("message %s: left out. %s", m.ID, cmp.Or(reason, "Its answers are with the results of the calls."))
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

// own gives a draft its message's id, time and otid. It drops the otid if an earlier message has the same.
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
	created := m.created()
	if m.CreatedAt == nil && !w.said.IsZero() {
		created = w.said
	}
	if present := time.Now(); created.After(present) {
		created = present
	} else if created.Year() < 1900 {
		created = time.Unix(0, 0).UTC()
	}
	d.CreatedAt, w.said = &created, created
}

// pieces splits a text into parts of the greatest allowed length.
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
func (w *writer) add(ctx context.Context, target *thread, id string, d recall.Draft, bytes int) error {
	if w.of != target || len(w.page) >= messagesAtOnce || w.bytes >= bytesAtOnce {
		if err := w.flush(ctx); err != nil {
			return err
		}
		w.of = target
	}
	if target.count == 0 && d.Role != recall.System {
		target.own = true
		w.place(target, "", w.instructions(*d.CreatedAt), true)
	}
	w.place(target, id, d, false)
	w.bytes += bytes
	return nil
}

// instructions returns the system prompt in Loci's form.
func (w *writer) instructions(at time.Time) recall.Draft {
	return recall.Draft{Role: recall.System, CreatedAt: &at, Content: []recall.Part{{Type: recall.Text, Text: w.prompt}}}
}

// place gives a draft the next position in a conversation. Letta's system messages are earlier system prompts, except
// those in the model's view after the first.
func (w *writer) place(target *thread, id string, d recall.Draft, isOwn bool) {
	target.count++
	w.seq++
	d = target.summarized(d)
	visible := target.context == nil || target.context[id]
	isPrompt := isOwn || d.Role == recall.System && (target.count == 1 || !visible || id == target.first)
	if isPrompt {
		target.prompts = append(target.prompts, target.count)
	}
	if d.Role == recall.Summary && target.context[id] {
		target.summary = new(target.count)
	}
	ordinary := !isPrompt && d.Role != recall.Summary && !d.IsErr
	target.ordinary, target.seen, target.last = append(target.ordinary, ordinary), append(target.seen, visible),
		*d.CreatedAt
	if ordinary && !visible {
		target.hidden.To, target.hidden.ToSeq = target.count, w.seq
		target.hidden.From, target.hidden.FromSeq = cmp.Or(target.hidden.From, target.count),
			cmp.Or(target.hidden.FromSeq, w.seq)
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

// finish gives a conversation its view, and a system prompt if it has no messages. Letta's newest stays the newest, so
// that a list is as long as Letta's; prompts are compiled from what the agent has.
func (w *writer) finish(ctx context.Context, target *thread) error {
	if target.last.IsZero() {
		target.last = w.agent.created()
	}
	if target.count == 0 {
		w.of = target
		w.place(target, "", w.instructions(target.last), true)
		if err := w.flush(ctx); err != nil {
			return err
		}
	}
	v := recall.View{FirstVisible: target.count + 1, Kept: []int{}, SummaryAt: target.summary,
		Clipped: json.RawMessage(`[]`)}
	p := target.count
	for ; p > 0 && (target.seen[p-1] || !target.ordinary[p-1]); p-- {
		if target.ordinary[p-1] {
			v.FirstVisible = p
		}
	}
	for k := 1; k < v.FirstVisible; k++ {
		if target.ordinary[k-1] && target.seen[k-1] {
			v.Kept = append(v.Kept, k)
		}
	}
	return w.Agents.Recall.RestoreView(ctx, w.org, target.id, v, target.prompts)
}
