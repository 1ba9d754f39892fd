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

// maxWaiting is how many messages later a call's result may come and still be compared with evidence.
const maxWaiting = 200

// restsOn reports whether an entry has evidence of a kind.
func (r *Record) restsOn(kind string) (some bool) {
	r.each(func(e *Entry) { some = some || e.Evidence != nil && e.Evidence.Kind == kind })
	return some
}

// Refresh marks the entries of a record that the log or a file now contradicts, and removes marks that no longer apply.
func (s *Store) Refresh(ctx context.Context, org db.Org, c recall.Conversation) error {
	stored, err := s.read(ctx, org, c.Key)
	if err != nil || stored.Version == 0 {
		return err
	}
	refreshed := stored
	refreshed.Record = stored.Record.clone()
	if err := s.compareFiles(ctx, org, c, &refreshed.Record); err != nil {
		return err
	}
	if refreshed.Record.restsOn(OfCall) {
		if err := s.compareCalls(ctx, org, c, &refreshed); err != nil {
			return err
		}
	}
	if refreshed.Checked == stored.Checked && sameMarks(stored.Record, refreshed.Record) {
		return nil
	}
	_, err = s.DB.Exec(ctx, `
		UPDATE working_memories SET record = @record, checked = @checked
		WHERE org = @org AND conversation_key = @conversation AND version = @version AND checked = @was`,
		pgx.StrictNamedArgs{"org": org, "conversation": c.Key, "version": stored.Version, "was": stored.Checked,
			"record": refreshed.Record, "checked": refreshed.Checked})
	return db.Error(err)
}

// sameMarks reports whether two records with equal entries have the same stale ones.
func sameMarks(a, b Record) bool { return Render(a) == Render(b) }

// compareFiles marks the entries that are based on files.
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
	hashes, err := s.Files.Hashes(ctx, org, foldersIn(c), names)
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

// mark marks an entry as stale since a position, unless it is marked already. If its evidence is confirmed, it removes
// the mark.
func (e *Entry) mark(confirmed bool, since int64) {
	switch {
	case confirmed:
		e.Stale = nil
	case e.Stale == nil:
		e.Stale = &since
	}
}

// compareCalls marks stale entries whose evidence is a call. It reads only messages that it has not read before. Calls
// without a result are compared again later.
func (s *Store) compareCalls(ctx context.Context, org db.Org, c recall.Conversation, r *row) error {
	from, open := r.Checked, recall.OpenCalls[answered]{}
	for from < c.Messages {
		to := min(from+comparedAtOnce, c.Messages)
		messages, err := s.Recall.Between(ctx, org, c, from+1, to)
		if err != nil {
			return err
		}
		for _, call := range answersIn(messages, open) {
			r.Record.each(func(e *Entry) {
				if e.Evidence != nil && call.repeats(e.Evidence) && call.seq > e.Seq {
					e.mark(hashOfResult(call.result) == e.Evidence.SHA256, call.seq)
				}
			})
		}
		from = to
	}
	r.Checked = from
	for _, waiting := range open {
		for _, call := range waiting {
			if call.called > c.Messages-maxWaiting {
				r.Checked = min(r.Checked, call.called-1)
			}
		}
	}
	return nil
}
