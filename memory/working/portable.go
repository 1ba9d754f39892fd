package working

import (
	"context"
	"errors"
	"iter"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
)

// Portable is the working memory of a conversation in the file of an agent. Its versions follow it.
type Portable struct {
	Key          int64     `db:"key" json:"-"` // key of the conversation
	Conversation string    `db:"conversation_id" json:"conversation_id"`
	Version      int       `db:"version" json:"version"`
	Record       Record    `db:"record" json:"record"`
	Checked      int       `db:"checked" json:"checked"`
	Turned       int       `db:"turned" json:"turned"`
	UpdatedAt    time.Time `db:"updated_at" json:"updated_at"`
}

// PortableVersion is a version of a working memory in the file of an agent.
type PortableVersion struct {
	Conversation string `json:"conversation_id"`
	RecordVersion
}

// Export lists the working memories of an agent's conversations, in the order of the conversations.
func (s *Store) Export(ctx context.Context, org db.Org, agentID string) ([]Portable, error) {
	return db.All[Portable](ctx, s.DB, `
		SELECT c.key, c.id AS conversation_id, w.version, w.record, w.checked, w.turned, w.updated_at
		FROM agents a
		JOIN conversations c ON c.org = a.org AND c.agent_key = a.key AND (c.deleted_at IS NULL OR c.reset_at IS NOT NULL)
		JOIN working_memories w ON w.org = c.org AND w.conversation_key = c.key
		WHERE a.org = $1 AND c.org = $1 AND w.org = $1 AND a.id = $2
		ORDER BY c.key`, org, agentID)
}

// exportPage is how many versions ExportVersions reads at a time.
const exportPage = 100

// ExportVersions yields the versions of a working memory, oldest first. It stops after the first error.
func (s *Store) ExportVersions(ctx context.Context, org db.Org, m Portable) iter.Seq2[PortableVersion, error] {
	return func(yield func(PortableVersion, error) bool) {
		for from := 1; from <= m.Version; from += exportPage {
			page, err := db.All[RecordVersion](ctx, s.DB, versionRows+`version >= $3
				ORDER BY version
				LIMIT $4`, org, m.Key, from, exportPage)
			if err != nil {
				yield(PortableVersion{}, err)
				return
			}
			for _, v := range page {
				if !yield(PortableVersion{m.Conversation, sized(v)}, nil) {
					return
				}
			}
		}
	}
}

// RestoreMemory stores the working memory of a restored conversation, after its messages and without its versions.
// ErrInvalid if it breaks a rule.
func (s *Store) RestoreMemory(ctx context.Context, org db.Org, m Portable) error {
	if m.Version < 0 || m.Checked < 0 || m.Turned < 0 {
		return db.Invalid("version, checked and turned must not be negative")
	}
	if err := m.Record.check(); err != nil {
		return err
	}
	err := db.Exec(ctx, s.DB, `
		INSERT INTO working_memories (org, agent_key, conversation_key, version, record, checked, turned, updated_at)
		SELECT @org, c.agent_key, c.key, @version, @record, @checked, @turned, @updated FROM conversations c
		WHERE c.org = @org AND c.id = @conversation AND c.messages >= @checked AND c.messages >= @turned`,
		pgx.StrictNamedArgs{"org": org, "conversation": m.Conversation, "version": m.Version, "record": m.Record,
			"checked": m.Checked, "turned": m.Turned, "updated": m.UpdatedAt})
	if errors.Is(err, db.ErrNotFound) {
		err = db.Invalid("checked is %d and turned is %d; the conversation has fewer messages", m.Checked, m.Turned)
	}
	return err
}

// check returns ErrInvalid if a record from a file breaks a rule.
func (r Record) check() (err error) {
	for _, f := range Fields {
		entries := r.Entries(f)
		if err := checkImportant(entries, f); err != nil {
			return err
		}
		for _, e := range entries {
			if e.Text == "" || f != LastEdit && strings.ContainsAny(e.Text, lineEnds) || e.Seq < 0 {
				return db.Invalid("an entry of %s is empty, has several lines, or a negative seq", f)
			}
			if v := e.Evidence; v != nil && v.Kind != OfFile && v.Kind != OfCall {
				return db.Invalid("an entry of %s has evidence of the kind %q; it must be file or call", f, db.Short(v.Kind))
			}
		}
	}
	return checkSize(Record{}, r, 0)
}

// RestoreVersion stores a version of a restored working memory. ErrInvalid if it breaks a rule.
func (s *Store) RestoreVersion(ctx context.Context, org db.Org, v PortableVersion) error {
	if err := v.Record.check(); err != nil {
		return err
	}
	err := db.Exec(ctx, s.DB, `
		INSERT INTO working_memory_versions (org, conversation_key, version, author, record, seq, at)
		SELECT @org, w.conversation_key, @version, @author, @record, @seq, @at
		FROM conversations c JOIN working_memories w ON w.org = c.org AND w.conversation_key = c.key
		WHERE c.org = @org AND w.org = @org AND c.id = @conversation AND @version::int BETWEEN 1 AND w.version`,
		pgx.StrictNamedArgs{"org": org, "conversation": v.Conversation, "version": v.Version, "author": v.Author,
			"record": v.Record, "seq": v.Seq, "at": v.At})
	if errors.Is(err, db.ErrNotFound) {
		err = db.Invalid("the version is %d; it must be from 1 to that of the working memory", v.Version)
	}
	return err
}

// CheckVersions returns ErrInvalid unless a restored working memory has all its versions.
func (s *Store) CheckVersions(ctx context.Context, org db.Org, conversation string) error {
	missing, err := db.One[int](ctx, s.DB, `
		SELECT w.version - (SELECT count(*) FROM working_memory_versions v
		                    WHERE v.org = $1 AND v.conversation_key = w.conversation_key)
		FROM conversations c JOIN working_memories w ON w.org = c.org AND w.conversation_key = c.key
		WHERE c.org = $1 AND w.org = $1 AND c.id = $2`, org, conversation)
	if err == nil && missing != 0 {
		err = db.Invalid("the working memory of %s lacks %d of its versions", conversation, missing)
	}
	return err
}
