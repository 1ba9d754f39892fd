package working

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/event"
	"github.com/loci-memory/loci/recall"
)

// comparedAtOnce is how many messages are compared with evidence at a time.
const comparedAtOnce = 200

// maxWaiting is how many messages a call may wait for its result and still be compared with evidence.
const maxWaiting = 200

// restsOn reports whether an entry has evidence of a kind.
func (r *Record) restsOn(kind string) (some bool) {
	r.each(func(e *Entry) { some = some || e.Evidence != nil && e.Evidence.Kind == kind })
	return some
}

// Refresh marks the entries of a conversation's record whose evidence the log or a file contradicts by now, and removes
// the marks of those that the newest evidence confirms again. The newest result of a call decides: an entry that rests
// on a call is stale if the same tool was called with the same arguments since and the last result differs; it is stale
// since the first of the results that differ. An entry that rests on a file is stale while the agent has no file of the
// name or one with another content, since the newest event when that was found. Another server may refresh the record
// at the same time: the marks are the same.
func (s *Store) Refresh(ctx context.Context, org db.Org, c recall.Conversation) error {
	was, err := s.read(ctx, org, c.Key)
	if err != nil || was.Version == 0 {
		return err
	}
	now := was
	now.Record = was.Record.clone()
	if err := s.compareFiles(ctx, org, c, &now.Record); err != nil {
		return err
	}
	if now.Record.restsOn(OfCall) {
		if err := s.compareCalls(ctx, org, c, &now); err != nil {
			return err
		}
	}
	if now.Checked == was.Checked && sameMarks(was.Record, now.Record) {
		return nil
	}
	_, err = s.DB.Exec(ctx, `
		UPDATE working_memories SET record = @record, checked = @checked
		WHERE org = @org AND conversation_key = @conversation AND version = @version AND checked = @was`,
		pgx.StrictNamedArgs{"org": org, "conversation": c.Key, "version": was.Version, "was": was.Checked,
			"record": now.Record, "checked": now.Checked})
	return db.Error(err)
}

// sameMarks reports whether two records with the same entries have the same stale ones.
func sameMarks(a, b Record) bool { return Render(a) == Render(b) }

// compareFiles marks the entries that rest on files.
func (s *Store) compareFiles(ctx context.Context, org db.Org, c recall.Conversation, r *Record) error {
	var names []string
	r.each(func(e *Entry) {
		if e.Evidence != nil && e.Evidence.Kind == OfFile {
			names = append(names, e.Evidence.Name)
		}
	})
	if len(names) == 0 {
		return nil
	}
	hashes, err := s.Files.Hashes(ctx, org, c.AgentID, names)
	if err != nil {
		return err
	}
	head, err := event.Head(ctx, s.DB, org, c.AgentID)
	r.each(func(e *Entry) {
		if e.Evidence != nil && e.Evidence.Kind == OfFile {
			e.mark(hashes[e.Evidence.Name] == e.Evidence.SHA256, head)
		}
	})
	return err
}

// mark marks an entry as stale since a position unless it is already, or removes the mark if its evidence is confirmed.
func (e *Entry) mark(confirmed bool, since int64) {
	switch {
	case confirmed:
		e.Stale = nil
	case e.Stale == nil:
		e.Stale = &since
	}
}

// compareCalls marks the entries that rest on calls, by the messages of the conversation that were not compared yet.
// Calls that wait for their results are compared again.
func (s *Store) compareCalls(ctx context.Context, org db.Org, c recall.Conversation, r *row) error {
	from, waiting := r.Checked, 0
	for from < c.Messages {
		to := min(from+comparedAtOnce, c.Messages)
		messages, err := s.Recall.Between(ctx, org, c, from+1, to)
		if err != nil {
			return err
		}
		var calls []answered
		calls, waiting = callsIn(messages)
		for _, call := range calls {
			r.Record.each(func(e *Entry) {
				if e.Evidence != nil && call.repeats(e.Evidence) && call.seq > e.Seq {
					e.mark(hashOfResult(call.result) == e.Evidence.SHA256, call.seq)
				}
			})
		}
		if waiting > from+1 && to < c.Messages { // the result is in the next messages
			to = waiting - 1
		}
		from = to
	}
	if r.Checked = from; waiting > 0 && waiting > c.Messages-maxWaiting {
		r.Checked = min(from, waiting-1)
	}
	return nil
}
