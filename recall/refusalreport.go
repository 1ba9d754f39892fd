package recall

import (
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/event"
)

// RefusedPrompt is a report: a provider refused a conversation's newest prompt for its content.
type RefusedPrompt struct {
	Refused
	OTID  string   // the caller's own id of the report; a repeated report changes nothing
	Runs  []string // the runs that made the refused turn; nil for a caller's own loop
	RunID *string  // the note's run

	// Alone says that the provider also refuses the turn without all earlier messages, so a trial is not needed.
	Alone bool

	// Frame says that the provider refuses the prompt whatever its messages say, so no message leaves the view.
	Frame bool

	// Answer is what the model said before its provider withheld the rest; nil if it said nothing. It is stored outside of
	// the view. If the model will be asked again, it is stored only if Shown says that somebody saw it.
	Answer *Draft
	Shown  bool

	// WithheldAt is the position of a withheld answer that is already stored; 0 for none.
	WithheldAt int

	// Note returns the text for the model about messages that left the view. part says that they are a part of a turn.
	Note func(left []Message, part bool) []Part
}

// RefusedView says what a refusal changed.
type RefusedView struct {
	Left     []string `json:"left" doc:"Ids of the messages that left the model's view."`
	Returned []string `json:"returned" doc:"Ids of the messages that are back in it."`

	// AskAgain means that the refused turn stays for now: earlier messages may be the cause, or the prompt was too long.
	AskAgain bool `json:"ask_again" doc:"Ask again with the next prompt, which is without messages from before the turn."`

	Compacted bool `json:"compacted" doc:"The prompt was too long for the provider: the conversation was compacted."`

	Unchanged bool `json:"unchanged" doc:"The report is known, or the refusal is not about what the prompt says."`

	Closed bool `json:"-"` // the refused turn has left; nothing in view waits for an answer
}

// refusing is the state of the work on a refusal.
type refusing struct {
	*Store
	tx   pgx.Tx
	org  db.Org
	c    Conversation
	of   RefusedPrompt
	view []Message // without system prompt and summary
	out  RefusedView

	summary  []Message // the view's summary; empty if there is none or it was refused
	answered int       // position of the last answer that was not refused, even if a summary has replaced it; 0: none
}

func (r *refusing) readView(ctx context.Context) error {
	view, err := r.View(ctx, r.org, r.c)
	if err != nil {
		return err
	}
	r.view, r.summary = nil, nil
	for _, m := range view[1:] {
		switch {
		case m.Role != Summary && m.Position != r.of.WithheldAt:
			r.view = append(r.view, m)
		case m.Role == Summary && m.Refused == nil:
			r.summary = append(r.summary, m)
		}
	}
	return nil
}

func (r *refusing) was() LastRefusal {
	if r.c.Refusal == nil {
		return LastRefusal{}
	}
	return *r.c.Refusal
}

func (r *refusing) lastAnswered(ctx context.Context) (int, error) {
	return db.One[int](ctx, r.tx, `
		SELECT coalesce(max(position), 0) FROM (
			SELECT position FROM messages
			WHERE org = $1 AND conversation_key = $2 AND role = 'assistant' AND NOT is_err AND purpose = '' AND refused IS NULL
			  AND position <> $3
			ORDER BY position DESC LIMIT 1) AS newest`, r.org, r.c.Key, r.of.WithheldAt)
}

// lastAnswer returns the index of the view's newest answer; -1 if there is none.
func (r *refusing) lastAnswer() int {
	for i, m := range slices.Backward(r.view) {
		if m.Role == Assistant {
			return i
		}
	}
	return -1
}

// before returns the view's messages before a position.
func (r *refusing) before(position int) []Message {
	n := slices.IndexFunc(r.view, func(m Message) bool { return m.Position >= position })
	if n < 0 {
		n = len(r.view)
	}
	return r.view[:n]
}

// after returns the view's messages from a position on.
func (r *refusing) after(position int) []Message { return r.view[len(r.before(position)):] }

// refusedTurn returns the messages of the refused turn. If the turn already had an answer, it returns only the messages
// from the last answer on, and part is true.
func (r *refusing) refusedTurn(last int, previous LastRefusal, inARow bool) (left []Message, part bool) {
	if last >= 0 && hasCall(r.view[last]) && r.goesOn(last) {
		return r.view[last:], true
	}
	after := 0
	if inARow {
		after = previous.At
	}
	return r.after(r.turnStart(last, after)), false
}

// goesOn reports whether the refused prompt continues the turn of the answer at index last, which calls tools. In a
// caller's own loop it does. In a run it does if an answer or a result since then is the run's own; also if no message
// since then is, because the run then continues where another turn failed.
func (r *refusing) goesOn(last int) bool {
	own := slices.DeleteFunc(slices.Clone(r.view[last:]), func(m Message) bool { return !r.ofRuns(m) })
	return len(own) == 0 || slices.ContainsFunc(own, func(m Message) bool { return m.Role == Assistant || m.Role == Tool })
}

func (r *refusing) ofRuns(m Message) bool {
	return m.RunID != nil && slices.Contains(r.of.Runs, *m.RunID)
}

// turnStart returns the position of the first message of the turn after the answer at index last. For runs this is
// their first message, or else the first after that answer; for a caller's own loop it is the first message behind
// position after and behind the last answer.
func (r *refusing) turnStart(last, after int) int {
	for _, matches := range []func(Message) bool{
		func(m Message) bool { return r.of.Runs != nil && r.ofRuns(m) },
		func(m Message) bool { return r.of.Runs == nil && m.Position > max(after, r.answered) },
		func(Message) bool { return r.of.Runs != nil },
	} {
		if n := slices.IndexFunc(r.view[last+1:], matches); n >= 0 {
			return r.view[last+1+n].Position
		}
	}
	return r.c.Messages + 1
}

// beginOf returns the position of the first message of the turn with this later answer. Messages of earlier turns that
// failed without an answer do not count.
func (r *refusing) beginOf(answer int) int {
	before := r.before(answer)
	if len(before) == 0 {
		return answer
	}
	begin := len(before) - 1
	for begin > 0 && !beginsTurn(before, begin) && (before[begin-1].Role != Assistant || hasCall(before[begin-1])) {
		begin--
	}
	if failed := r.was().Failed; failed != nil {
		turn := before[begin:]
		n := slices.IndexFunc(turn, func(m Message) bool { return m.Role != User || m.Position > failed.At })
		if n > 0 && turn[n].Role == User {
			begin += n
		}
	}
	return before[begin].Position
}

// movedMessage is a message that left the view or came back into it.
type movedMessage struct {
	ID       string `db:"id"`
	Tokens   int    `db:"tokens"`
	Position int    `db:"position"`
}

// movedColumns are the columns of movedMessage. A summary counts no tokens, because it keeps its place in the view.
const movedColumns = `'message-' || id AS id, CASE role WHEN 'summary' THEN 0 ELSE tokens END AS tokens, position`

// leave takes messages out of the view. Their calls without a result get a result, which leaves with them.
func (r *refusing) leave(ctx context.Context, left []Message, trial int) error {
	if len(left) == 0 {
		return nil
	}
	positions := positionsOf(left)
	answered, err := r.answerOpen(ctx, positions)
	if err != nil {
		return err
	}
	why := r.of.Refused
	why.Trial = trial
	moved, err := db.All[movedMessage](ctx, r.tx, `
		UPDATE messages SET refused = $4 WHERE org = $1 AND conversation_key = $2 AND position = ANY ($3)
		RETURNING `+movedColumns, r.org, r.c.Key, append(positions, answered...), why)
	slices.SortFunc(moved, func(a, b movedMessage) int { return a.Position - b.Position })
	for _, m := range moved {
		r.out.Left = append(r.out.Left, m.ID)
		r.c.HiddenTokens += int64(m.Tokens)
	}
	return err
}

// answerOpen appends a result for each call in the messages that has none, and returns the position of the message with
// the results.
func (r *refusing) answerOpen(ctx context.Context, positions []int) (answered []int, err error) {
	open, err := db.All[string](ctx, r.tx, `
		SELECT call_id FROM tool_calls
		WHERE org = $1 AND conversation_key = $2 AND position = ANY ($3) AND result_position IS NULL
		ORDER BY position, call_id`, r.org, r.c.Key, positions)
	if err != nil || len(open) == 0 {
		return nil, err
	}
	results := Draft{Role: Tool, RunID: r.of.RunID}
	for _, id := range open {
		results.Content = append(results.Content, Part{Type: ToolReturn, CallID: id, IsError: true,
			Text: "The call was not run: the model's provider refused the prompt with it."})
	}
	appended, err := r.Append(ctx, r.org, r.c.AgentID, r.c.ID, []Draft{results})
	if err != nil {
		return nil, err
	}
	return []int{appended[0].Position}, nil
}

// note tells the model which messages left the view.
func (r *refusing) note(ctx context.Context, next *LastRefusal, left []Message, part bool) error {
	if len(left) == 0 {
		return nil
	}
	appended, err := r.Append(ctx, r.org, r.c.AgentID, r.c.ID, []Draft{{Role: System, RunID: r.of.RunID,
		Content: r.of.Note(left, part)}})
	if err == nil && next.From > 0 {
		next.Notes = append(slices.Clone(next.Notes), appended[0].Position)
	}
	return err
}

// keepAnswer stores, outside of the view, what the model said before the rest was withheld.
func (r *refusing) keepAnswer(ctx context.Context) error {
	var appended []Appended
	err := db.Tx(ctx, r.tx, func(tx pgx.Tx) (err error) {
		appended, err = r.With(tx).Append(ctx, r.org, r.c.AgentID, r.c.ID, []Draft{*r.of.Answer})
		return err
	})
	if err != nil {
		return err
	}
	return r.leave(ctx, []Message{{Position: appended[0].Position}}, 0)
}

// finish stores the refusal and the new view.
func (r *refusing) finish(ctx context.Context, next LastRefusal) error {
	if r.of.Answer != nil && (r.of.Shown || !r.out.AskAgain) {
		if err := r.keepAnswer(ctx); err != nil && !errors.Is(err, db.ErrInvalid) { // the log does not accept it
			return err
		}
	}
	if r.of.WithheldAt > 0 {
		if err := r.leave(ctx, []Message{{Position: r.of.WithheldAt}}, 0); err != nil {
			return err
		}
	}
	r.out.Closed = next.Closed
	next.OTID, next.Unconfirmed = r.of.OTID, r.was().Unconfirmed
	err := db.Exec(ctx, r.tx, endFlushes("$1", "$2")+`
		UPDATE conversations
		SET frame = frame + 1, hidden_tokens = least($3, tokens), reported_tokens = 0, reported_position = 0,
		    refusal = $4::jsonb || ('{"at":' || messages::text || ',"failed":{"at":' || messages::text || ',"status":' ||
		        $5::integer::text || '}}')::jsonb, updated_at = now() -- jsonb_build_object is refused by a cluster
		WHERE org = $1 AND key = $2`, r.org, r.c.Key, r.c.HiddenTokens, next, r.of.Status)
	if err != nil {
		return err
	}
	_, err = event.Append(ctx, r.tx, r.org, event.Event{AgentID: r.c.AgentID, Type: event.PromptRefused, RefID: r.c.ID})
	return err
}
