package working

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pmezard/go-difflib/difflib"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// RecordVersion is a record as it was after one of its changes.
type RecordVersion struct {
	Version int       `db:"version" json:"version"`
	Author  Author    `db:"author" json:"author"`
	Tokens  int       `db:"-" json:"tokens"`
	Seq     int64     `db:"seq" json:"seq" doc:"Position of the event of the change in the agent's log."`
	At      time.Time `db:"at" json:"at" doc:"When the version was made."`
	Record  Record    `db:"record" json:"record" doc:"Without marks of stale entries."`
}

const versionRows = `
	SELECT version, author, seq, at, record FROM working_memory_versions
	WHERE org = $1 AND conversation_key = $2 AND `

func sized(v RecordVersion) RecordVersion {
	v.Record = v.Record.clone()
	v.Tokens = Size(v.Record)
	return v
}

// Versions lists at most limit versions of a conversation's record, newest first. If before is not 0, it lists versions
// below before.
func (s *Store) Versions(ctx context.Context, org db.Org, c recall.Conversation, before, limit int) (
	[]RecordVersion, error) {
	list, err := db.All[RecordVersion](ctx, s.DB, versionRows+`($3 = 0 OR version < $3)
		ORDER BY version DESC
		LIMIT $4`, org, c.Key, before, limit)
	for i := range list {
		list[i] = sized(list[i])
	}
	return list, err
}

// Version returns one version of a conversation's record. Version 0 is the empty record before the first change.
func (s *Store) Version(ctx context.Context, org db.Org, c recall.Conversation, version int) (RecordVersion, error) {
	if version == 0 {
		return sized(RecordVersion{At: c.CreatedAt}), nil
	}
	v, err := db.One[RecordVersion](ctx, s.DB, versionRows+`version = $3`, org, c.Key, version)
	return sized(v), db.OrNotFound(err, "The working memory of conversation %s has no version %d", c.ID, version)
}

// Diff returns how a record changed between two versions, as a unified diff of what prompts show. It is empty if that
// is equal.
func (s *Store) Diff(ctx context.Context, org db.Org, c recall.Conversation, from, to int) (string, error) {
	a, err := s.Version(ctx, org, c, from)
	if err != nil {
		return "", err
	}
	b, err := s.Version(ctx, org, c, to)
	if err != nil {
		return "", err
	}
	return diff(a, b)
}

func diff(a, b RecordVersion) (string, error) {
	name := func(v RecordVersion) string { return fmt.Sprintf("working_memory@%d", v.Version) }
	lines := func(v RecordVersion) []string {
		if text := Render(v.Record); text != "" {
			return difflib.SplitLines(text)
		}
		return nil
	}
	return difflib.GetUnifiedDiffString(difflib.UnifiedDiff{A: lines(a), B: lines(b), FromFile: name(a), ToFile: name(b),
		Context: 3})
}

// Restore gives a conversation's record the entries of one of its versions, as a new version.
func (s *Store) Restore(ctx context.Context, org db.Org, t Target, version int) (Memory, error) {
	return s.change(ctx, org, t, func(in *Store, l log, before *row) (Record, error) {
		v, err := in.Version(ctx, org, l.Conversation, version)
		before.Checked = 0
		return v.Record, err
	})
}

// CopiedTo says how much of a conversation was copied.
type CopiedTo struct {
	Position int // position of the last message that was copied completely
	// Position of the last message that contributes its changes of the record to the copy.
	Changed int
	SeqAt   func(position int) int64 // maps the position of a message to the position of its copy in the agent's log
}

// Fork gives a conversation that is a copy of the first messages of another one the record that the other had at that
// point.
func (s *Store) Fork(ctx context.Context, org db.Org, from, to recall.Conversation, copied CopiedTo) error {
	v, err := s.versionAt(ctx, org, from, copied.Changed)
	if errors.Is(err, db.ErrNotFound) || err == nil && v.Record.IsEmpty() {
		return nil
	}
	if err != nil {
		return err
	}
	r := v.Record.clone()
	r.each(func(e *Entry) {
		position, failed := s.Recall.PositionOf(ctx, org, from, e.Seq)
		switch {
		case failed == nil && position <= copied.Position:
			e.Seq = copied.SeqAt(position)
		case failed != nil && !errors.Is(failed, db.ErrNotFound):
			err = failed
		}
	})
	if err != nil {
		return err
	}
	author := Author{Kind: ByFork, From: from.ID}
	return s.carry(ctx, org, Target{AgentID: to.AgentID, Conversation: to.ID, Author: author}, r)
}

// versionAt returns the version of a record from the time when the conversation ended at a position.
func (s *Store) versionAt(ctx context.Context, org db.Org, c recall.Conversation, position int) (RecordVersion, error) {
	var seq int64 // 0 means the newest
	if position < c.Messages {
		last, err := s.Recall.Between(ctx, org, c, position, position)
		if err != nil || len(last) == 0 {
			return RecordVersion{}, err
		}
		seq = last[0].Seq
	}
	return db.One[RecordVersion](ctx, s.DB, versionRows+`($3::bigint = 0 OR seq <= $3)
		ORDER BY version DESC
		LIMIT 1`, org, c.Key, seq)
}

// Reset is for a conversation that replaces another one. It stores the other's record as the first version, and an
// empty record as the second.
func (s *Store) Reset(ctx context.Context, org db.Org, from, to recall.Conversation) error {
	source, err := s.read(ctx, org, from.Key)
	if err != nil || source.Record.IsEmpty() {
		return err
	}
	t := Target{AgentID: to.AgentID, Conversation: to.ID, Author: Author{Kind: ByReset, From: from.ID}}
	if err := s.carry(ctx, org, t, source.Record); err != nil {
		return err
	}
	return s.carry(ctx, org, t, Record{})
}

// carry replaces the record of a conversation.
func (s *Store) carry(ctx context.Context, org db.Org, t Target, r Record) error {
	_, err := s.change(ctx, org, t, func(_ *Store, _ log, before *row) (Record, error) {
		before.Checked = 0
		return r.unmarked(), nil
	})
	return err
}
