package recall

import (
	"context"
	"iter"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/event"
)

// Append appends messages to an agent's conversation, all or none, and returns their places in the order of the drafts.
// Before anything is stored, secrets are redacted and long tool results are moved out of the log. A draft is not stored
// again if the agent's log already has its otid, or if it is the same result of a call that already has that result;
// Append then returns the place of the stored message. ErrNotFound if the agent or the conversation does not exist. A
// DraftError that wraps ErrInvalid if a draft breaks a rule; one that wraps ErrConflict if a draft's otid belongs to
// another message, or if a draft has a different result for a call that already has one.
func (s *Store) Append(ctx context.Context, org db.Org, agentID, conversation string,
	drafts []Draft) ([]Appended, error) {
	appended, _, err := s.AppendTo(ctx, org, agentID, conversation, Each(drafts))
	return appended, err
}

// Each yields drafts that are held in memory.
func Each(drafts []Draft) iter.Seq2[Draft, error] {
	return func(yield func(Draft, error) bool) {
		for _, d := range drafts {
			if !yield(d, nil) {
				return
			}
		}
	}
}

// AppendAll is Append for any number of drafts that are already in the server, such as the messages of a file. It
// stores a second result of a call.
func (s *Store) AppendAll(ctx context.Context, org db.Org, agentID, conversation string, drafts []Draft) error {
	to := appending{Store: s, org: org, agentID: agentID, conversation: conversation, secondResults: true}
	_, _, err := s.appendEach(ctx, to, Each(drafts))
	return err
}

// maxAttempts is how often an append is tried while other requests keep changing what it read.
const maxAttempts = 10

// AppendTo is Append for drafts that arrive one by one; it holds only a few in memory at a time. It also returns the
// conversation with its new counts. It may range over drafts several times, and returns the first error that drafts
// yields.
func (s *Store) AppendTo(ctx context.Context, org db.Org, agentID, conversation string,
	drafts iter.Seq2[Draft, error]) ([]Appended, Conversation, error) {
	to := appending{Store: s, org: org, agentID: agentID, conversation: conversation}
	return s.appendEach(ctx, to, bounded(drafts))
}

// Turns are messages for a conversation of an agent.
type Turns struct {
	AgentID, Conversation string
	Drafts                iter.Seq2[Draft, error] // may be ranged over several times
	Take                  []string                // otids that the drafts take from other messages of the agent
}

// AppendAnd runs AppendTo and then rest in one transaction; rest gets what was appended. If other requests change what
// the append read, the whole transaction runs again.
func (s *Store) AppendAnd(ctx context.Context, org db.Org, turns Turns,
	rest func(tx pgx.Tx, appended []Appended, c Conversation) error) error {
	to := appending{Store: s, org: org, agentID: turns.AgentID, conversation: turns.Conversation, rest: rest,
		take: turns.Take}
	_, _, err := s.appendEach(ctx, to, bounded(turns.Drafts))
	return err
}

// bounded yields the drafts up to the most that one append accepts, and then an error in place of the next.
func bounded(drafts iter.Seq2[Draft, error]) iter.Seq2[Draft, error] {
	return func(yield func(Draft, error) bool) {
		n := 0
		for d, err := range drafts {
			if n == MaxMessages && err == nil {
				err = db.Invalid("more than %d messages are given. Send at most %[1]d messages at a time.", MaxMessages)
			}
			if !yield(d, err) || err != nil {
				return
			}
			n++
		}
	}
}

// appendEach is AppendTo for any number of drafts.
func (s *Store) appendEach(ctx context.Context, target appending, drafts iter.Seq2[Draft, error]) (appended []Appended,
	c Conversation, err error) {
	redactor, err := s.redactor(ctx, target.org)
	if err != nil {
		return nil, c, err
	}
	now := time.Now()
	for range maxAttempts {
		err = db.Tx(ctx, s.db, func(tx pgx.Tx) error {
			a := target
			a.Store, a.redactor, a.now, a.otids = s.With(tx), redactor, now, map[string]bool{}
			a.provenance = db.ProvenanceOf(ctx)
			err := a.appendAll(ctx, drafts)
			appended, c = a.out, a.end.Conversation
			if err == nil && target.rest != nil {
				err = target.rest(tx, appended, c)
			}
			return err
		})
		if !isOTIDRace(err) && (!isNotFound(err) || !s.hasNewDefault(ctx, target.org, target.agentID, target.conversation)) {
			break
		}
	}
	if err != nil {
		return nil, c, err
	}
	s.search.Words.Grew(target.org, c.AgentKey, len(appended))
	return appended, c, nil
}

// Limits of a chunk. The drafts of one chunk are checked and stored together.
const (
	chunkMessages = 500
	chunkBytes    = 1 << 20
)

// appendAll appends drafts chunk by chunk.
func (a *appending) appendAll(ctx context.Context, drafts iter.Seq2[Draft, error]) error {
	n := 0
	for d, err := range drafts {
		if err != nil {
			return err
		}
		e, err := newEntry(d, a.redactor, surroundings{now: a.now})
		if err != nil {
			return &DraftError{At: n, Err: err}
		}
		e.at = n
		n++
		if err := a.add(ctx, e); err != nil {
			return err
		}
	}
	if n == 0 {
		return db.Invalid("0 messages are to be appended; it must be from 1 to %d", MaxMessages)
	}
	return a.appendChunk(ctx)
}

// add adds an entry to the chunk, and appends the chunk if it is full.
func (a *appending) add(ctx context.Context, e entry) error {
	a.chunk, a.bytes = append(a.chunk, e), a.bytes+e.bytes()
	if len(a.chunk) < chunkMessages && a.bytes < chunkBytes {
		return nil
	}
	return a.appendChunk(ctx)
}

// hasNewDefault reports whether the caller named the default conversation and the agent has one. The append may have
// found none because a reset replaced it while the append waited for its lock.
func (s *Store) hasNewDefault(ctx context.Context, org db.Org, agentID, conversation string) bool {
	c, err := s.Conversation(ctx, org, agentID, conversation)
	return err == nil && c.IsDefault
}

// appendChunk appends the chunk at the conversation's end, and empties it.
func (a *appending) appendChunk(ctx context.Context) (err error) {
	if a.end.Key == 0 {
		if a.end, err = a.lockEnd(ctx, a.org, a.agentID, a.conversation); err != nil {
			return err
		}
		if err := a.readUntold(ctx); err != nil {
			return err
		}
	}
	fresh, err := a.dropRepeated(ctx)
	if err == nil {
		fresh, err = a.dropUntold(ctx, fresh)
	}
	if err == nil && a.restores && len(fresh) < len(a.chunk) {
		err = db.Invalid("two messages of agent %s have the same otid", a.agentID)
	}
	if err == nil && len(fresh) > 0 {
		err = a.store(ctx, fresh)
	}
	clear(a.chunk)
	a.chunk, a.bytes = a.chunk[:0], 0
	return err
}

// store stores those entries of the chunk that the log does not have yet.
func (a *appending) store(ctx context.Context, fresh []*entry) error {
	calls, err := a.pairCalls(ctx, a.end, fresh)
	if err == nil && !a.restores && !a.secondResults {
		var once []*entry
		if once, err = a.dropRepeatedResults(ctx, fresh, calls); err == nil && len(once) < len(fresh) {
			if fresh = once; len(fresh) == 0 {
				return nil
			}
			calls, err = a.pairCalls(ctx, a.end, fresh)
		}
	}
	if err != nil {
		return err
	}
	if err := a.fitResults(ctx, fresh); err != nil {
		return err
	}
	if err := a.replaceFailed(ctx, fresh); err != nil {
		return err
	}
	events, err := a.events(ctx, fresh)
	if err != nil {
		return err
	}
	var batch pgx.Batch
	for i, e := range fresh {
		a.end.extend(e)
		if e.Provenance == nil {
			e.Provenance = a.end.beyond(a.provenance)
		}
		if err := a.end.queueMessage(&batch, e, events[i].Seq); err != nil {
			return err
		}
		a.out[e.at] = Appended{ID: events[i].RefID, Seq: events[i].Seq, Position: a.end.Messages, Tokens: e.tokens,
			OTID: e.OTID, Orphans: orphansOf(e.Content)}
	}
	calls.queue(&batch, a.end)
	a.end.queue(&batch)
	if err := a.db.SendBatch(ctx, &batch).Close(); err != nil {
		return db.Error(err)
	}
	more := a.end.added.asked
	a.end.added = added{}
	if a.end.Quota == nil {
		return nil
	}
	return db.CheckQuota(ctx, a.db, a.org, db.QuotaStoredBytes, more)
}

// events returns the entries' events. It appends them to the log of events, unless the entries are restored.
func (a *appending) events(ctx context.Context, fresh []*entry) ([]event.Event, error) {
	events := make([]event.Event, len(fresh))
	for i, e := range fresh {
		events[i] = event.Event{AgentID: a.agentID, Seq: e.seq, Type: event.MessageAppended,
			RefID: "message-" + e.id.String()}
	}
	if a.restores {
		return events, a.checkEvents(ctx, events)
	}
	return event.Append(ctx, a.db.(pgx.Tx), a.org, events...)
}
