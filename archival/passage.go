package archival

import (
	"context"
	"crypto/sha256"
	"errors"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/pgvector/pgvector-go"

	"github.com/loci-memory/loci/chunker"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/event"
	"github.com/loci-memory/loci/embed/lexicon"
)

//nolint:gosec // no password
const passageColumns = `p.key, 'passage-' || p.id AS id, c.id AS archive_id, p.text, p.tags, p.metadata, p.happened_at,
	p.created_at, p.updated_at, p.language, p.language_given, p.provenance, p.valid_from, p.valid_until,
	coalesce(p.valid_until <= now(), false) AS ended,
	(SELECT 'passage-' || n.id FROM passages n WHERE n.org = $1 AND n.key = p.superseded_by) AS superseded_by`

// Reach says which archives a caller reads and writes.
type Reach struct {
	AgentID string       // only those of this agent; empty: all
	Users   db.UserScope // only those of these users, and those of nobody
}

// Of is the reach of an agent of which all users share the memory; empty: of operators.
func Of(agentID string) Reach { return Reach{AgentID: agentID, Users: db.AllUsers()} }

// where returns a condition on archive c, and adds its arguments to args.
func (r Reach) where(args pgx.StrictNamedArgs) string {
	where := r.Users.Where(`c.user_key`, args)
	if r.AgentID != "" {
		args["agent"] = r.AgentID
		where += ` AND EXISTS (
			SELECT FROM agent_archives a WHERE a.org = @org AND a.archive_key = c.key AND a.agent_id = @agent OFFSET 0)`
	}
	return where
}

// Passage returns a passage by its id. ErrNotFound if there is none within the reach.
func (s *Store) Passage(ctx context.Context, org db.Org, r Reach, id string) (Passage, error) {
	args := pgx.StrictNamedArgs{"org": org, "id": uuidOf(id)}
	p, err := db.One[Passage](ctx, s.db, `
		SELECT `+db.Named(passageColumns)+`
		FROM passages p JOIN archives c ON c.org = p.org AND c.key = p.archive_key AND c.deleted_at IS NULL
		WHERE p.org = @org AND p.id = @id AND `+r.where(args), args)
	return p, orNotFound(err, "Passage", id)
}

// ArchivePassage returns a passage by its id. ErrNotFound if it is not in the archive.
func (s *Store) ArchivePassage(ctx context.Context, org db.Org, archiveID, id string) (Passage, error) {
	p, err := s.Passage(ctx, org, Of(""), id)
	if err == nil && p.ArchiveID != archiveID {
		err = db.ErrNotFound
	}
	return p, orNotFound(err, "Passage", id)
}

// PassageList narrows a list of passages.
type PassageList struct {
	Contains string // only passages with this in their text; case is ignored
	Held     db.Held
}

// Passages lists the passages of an agent within a reach, ordered by HappenedAt. The list begins behind the passage
// p.After and ends before p.Before. ErrNotFound if the agent does not exist.
func (s *Store) Passages(ctx context.Context, org db.Org, r Reach, l PassageList, p db.Page) ([]Passage, error) {
	if _, err := db.AgentKey(ctx, s.db, org, r.AgentID); err != nil {
		return nil, err
	}
	args := pgx.StrictNamedArgs{"org": org, "contains": db.Clean(l.Contains)}
	held := l.Held.Where("p", args)
	const order = "p.happened_at, p.key"
	place := `SELECT ` + order + ` FROM passages p WHERE p.org = @org AND p.id = @place::uuid`
	clauses := p.ByUUID("passage-").Clauses(order, place, args)
	rows, err := db.All[Passage](ctx, s.db, `
		SELECT `+db.Named(passageColumns)+`
		FROM passages p JOIN archives c ON c.org = p.org AND c.key = p.archive_key AND c.deleted_at IS NULL
		WHERE p.org = @org AND `+r.where(args)+`
		  AND (@contains = '' OR strpos(lower(p.text), lower(@contains)) > 0)`+held+`
		  AND `+clauses.Where+clauses.Order, args)
	if clauses.Reversed {
		slices.Reverse(rows)
	}
	return rows, err
}

// CountPassages counts the passages within a reach that hold now.
func (s *Store) CountPassages(ctx context.Context, org db.Org, r Reach) (int, error) {
	args := pgx.StrictNamedArgs{"org": org}
	held := db.Held{}.Where("p", args)
	return db.One[int](ctx, s.db, `
		SELECT count(*) FROM passages p JOIN archives c ON c.org = p.org AND c.key = p.archive_key AND c.deleted_at IS NULL
		WHERE p.org = @org AND `+r.where(args)+held, args)
}

// UpdatePassage changes a passage within a reach.
//   - ErrNotFound if there is no such passage
//   - ErrConflict if another passage of its archive has the new text
//   - ErrInvalid if the text is blank or has more than PassageTokens, or the passage would end before it begins or
//     supersede itself
//   - *SupersededError if another passage superseded it already
func (s *Store) UpdatePassage(ctx context.Context, org db.Org, r Reach, id string, u PassageUpdate) (Passage, error) {
	if err := u.check(); err != nil {
		return Passage{}, err
	}
	var changed Passage
	err := db.Tx(ctx, s.db, func(tx pgx.Tx) error {
		var err error
		changed, err = s.With(tx).update(ctx, org, r, id, u)
		return err
	})
	return changed, err
}

// update does UpdatePassage inside a transaction.
func (s *Store) update(ctx context.Context, org db.Org, r Reach, id string, u PassageUpdate) (Passage, error) {
	rowLock := "KEY SHARE"
	if u.SupersededBy != nil {
		rowLock = superseding
	}
	before, archive, err := s.lockPassage(ctx, org, r, id, rowLock)
	if err != nil {
		return Passage{}, err
	}
	after, err := s.validity(ctx, org, before, u)
	if err != nil {
		return Passage{}, err
	}
	if err := s.change(ctx, org, archive, before, change{u, after}); err != nil {
		return Passage{}, err
	}
	if err := s.appendEvents(ctx, org, archive, event.PassageUpdated, before.ID); err != nil {
		return Passage{}, err
	}
	return s.Passage(ctx, org, r, id)
}

func (u PassageUpdate) check() error {
	if u.Text != nil {
		if err := (Draft{Text: *u.Text}).check(); err != nil {
			return err
		}
		if n := chunker.Estimate(*u.Text); n > PassageTokens {
			return db.Invalid("the text has about %d tokens; a passage may have at most %d. "+
				"Delete this passage and insert the text: it becomes several passages", n, PassageTokens)
		}
	}
	if u.Language != nil {
		if err := checkLanguage(*u.Language); err != nil {
			return err
		}
	}
	return checkTags(u.Tags)
}

// given returns the code of the language that the passage's writer chose; "" if they did not.
func (p Passage) given() string {
	if !p.LanguageGiven || p.Language == nil {
		return ""
	}
	return *p.Language
}

// lockPassage locks a passage's archive with rowLock and then the passage. All requests lock in this order. It also
// returns the archive's key.
func (s *Store) lockPassage(ctx context.Context, org db.Org, r Reach, id, rowLock string) (Passage, int64, error) {
	p, err := s.Passage(ctx, org, r, id)
	if err != nil {
		return Passage{}, 0, err
	}
	archive, err := s.lock(ctx, org, p.ArchiveID, rowLock)
	if err != nil {
		return Passage{}, 0, orNotFound(err, "Passage", id)
	}
	p, err = db.One[Passage](ctx, s.db, `
		SELECT `+passageColumns+` FROM passages p JOIN archives c ON c.org = p.org AND c.key = p.archive_key
		WHERE p.org = $1 AND p.key = $2
		FOR UPDATE OF p`, org, p.Key)
	return p, archive, orNotFound(err, "Passage", id)
}

// change writes an update of a passage, and the time in which the passage holds.
func (s *Store) change(ctx context.Context, org db.Org, archive int64, p Passage, c change) error {
	args := pgx.StrictNamedArgs{"org": org, "key": p.Key, "text": nil, "sum": nil,
		"lex": (*pgvector.SparseVector)(nil), "terms": nil, "tags": nil, "metadata": c.Metadata,
		"from": c.after.ValidFrom, "until": c.after.ValidUntil, "successor": c.after.successor,
		"provenance": db.ProvenanceOf(ctx), "language": nil, "given": nil}
	var err error
	given := p.given()
	if c.Language != nil {
		given = *c.Language
	}
	if c.Text == nil && c.Language != nil {
		c.Text = &p.Text // its words are weighed again
	}
	if c.Text != nil {
		text := db.Clean(*c.Text)
		sum, lex := sha256.Sum256([]byte(text)), lexicon.DocumentIn(text, given)
		args["text"], args["sum"], args["lex"], args["terms"] = text, sum[:], &lex.Vector, lexicon.Owned(archive, lex.Terms)
		args["language"], args["given"] = lex.Language, given != ""
	}
	if c.Tags != nil {
		args["tags"] = db.Tags(c.Tags)
	}
	update := func() error {
		return db.Exec(ctx, s.db, `
		UPDATE passages
		SET text = coalesce(@text, text), sha256 = coalesce(@sum, sha256), lex = coalesce(@lex, lex),
		    terms = coalesce(@terms::bigint[], terms), tags = coalesce(@tags::text[], tags),
		    metadata = coalesce(@metadata, metadata), valid_from = @from, valid_until = @until,
		    superseded_by = @successor, updated_at = now(),
		    language = CASE WHEN @given::boolean IS NULL THEN language ELSE nullif(@language, '') END,
		    language_given = coalesce(@given, language_given),
		    provenance = CASE WHEN coalesce(@text, text) = text THEN provenance ELSE @provenance END
		WHERE org = @org AND key = @key`, args)
	}
	if c.Text == nil {
		err = update()
	} else {
		err = db.Resize(ctx, s.db.(pgx.Tx), db.Rows{Table: "passages", Where: `r.key = $2`, Args: []any{org, p.Key}}, update)
	}
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && db.Constraint(pg) == "passages_text_key" {
		return db.Conflict("archive %s has a passage with this text already", p.ArchiveID)
	}
	if err == nil && c.Metadata != nil {
		err = s.describe(ctx, org, p.Key)
	}
	if err != nil {
		return err
	}
	return s.updateVectors(ctx, org, archive, p, c)
}

// updateVectors follows an update of a passage. If the text changed, it deletes the passage's vectors, queues it for
// new ones, and notes its new words. Otherwise it copies the fields that searches filter by to the vectors.
func (s *Store) updateVectors(ctx context.Context, org db.Org, archive int64, p Passage, c change) error {
	if c.Text != nil {
		if err := s.search.Words.Note(ctx, s.db, org, p.Key); err != nil {
			return err
		}
	}
	if c.Text != nil && *c.Text != p.Text {
		_, err := s.db.Exec(ctx, `DELETE FROM passage_vectors WHERE org = $1 AND passage_key = $2`, org, p.Key)
		if err != nil {
			return err
		}
		return s.wait(ctx, org, archive, []uuid.UUID{uuidOf(p.ID)})
	}
	_, err := s.db.Exec(ctx, `
		UPDATE passage_vectors v SET tags = p.tags, valid_from = p.valid_from, valid_until = p.valid_until
		FROM passages p
		WHERE p.org = $1 AND p.key = $2 AND v.org = $1 AND v.passage_key = $2
		  AND (v.tags, v.valid_from, v.valid_until) IS DISTINCT FROM (p.tags, p.valid_from, p.valid_until)`, org, p.Key)
	return err
}

// DeleteArchivePassage deletes a passage of an archive. ErrInvalid if the passage belongs to another archive;
// ErrNotFound if the archive or the passage does not exist.
func (s *Store) DeleteArchivePassage(ctx context.Context, org db.Org, archiveID, id string) error {
	c, err := s.Archive(ctx, org, archiveID)
	if err != nil {
		return err
	}
	p, err := s.Passage(ctx, org, Of(""), id)
	if err != nil {
		return err
	}
	if p.ArchiveID != c.ID {
		return db.Invalid("Passage %s does not belong to archive %s", p.ID, c.ID)
	}
	return s.DeletePassage(ctx, org, Of(""), id)
}

// DeletePassage deletes a passage within a reach. ErrNotFound if there is none.
func (s *Store) DeletePassage(ctx context.Context, org db.Org, r Reach, id string) error {
	return db.Tx(ctx, s.db, func(tx pgx.Tx) error {
		txStore := s.With(tx)
		p, archive, err := txStore.lockPassage(ctx, org, r, id, "KEY SHARE")
		if err != nil {
			return err
		}
		if err := db.DeleteOne(ctx, tx, "passages", `r.key = $2`, org, p.Key); err != nil {
			return err
		}
		return txStore.appendEvents(ctx, org, archive, event.PassageDeleted, p.ID)
	})
}
