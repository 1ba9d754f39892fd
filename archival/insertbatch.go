package archival

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/event"
	"github.com/loci-memory/loci/embed/lexicon"
)

// Batch is many drafts, and the passages that they became, in the drafts' order. The caller closes it.
type Batch struct {
	records records
	pieces  []*piece

	supersedes bool // some of the drafts supersede passages
}

// piece is a draft, or a part of one that is too long for a passage. Its content is in the batch's records.
type piece struct {
	id              uuid.UUID // of the passage, unless the archive has the text already
	sha256          [sha256.Size]byte
	draft, inserted record
	left            bool // the draft has something that the archive's passage has not

	supersedes string // the id of the passage that the draft supersedes, in its first piece
	dated      bool   // the draft says when it happened
}

// Inserted yields the passages: for each draft one, or several where it was cut.
func (b *Batch) Inserted() iter.Seq2[Inserted, error] {
	return func(yield func(Inserted, error) bool) {
		for _, p := range b.pieces {
			var in Inserted
			err := b.records.read(p.inserted, &in)
			if !yield(in, err) || err != nil {
				return
			}
		}
	}
}

// Left returns the passages that lack something of their drafts (see Inserted.Left), at most so many, and the number of
// those beyond.
func (b *Batch) Left(most int) (first []Inserted, more int, err error) {
	for _, p := range b.pieces {
		switch {
		case !p.left:
		case len(first) == most:
			more++
		default:
			var in Inserted
			if err := b.records.read(p.inserted, &in); err != nil {
				return nil, 0, err
			}
			first = append(first, in)
		}
	}
	return first, more, nil
}

// Close frees the batch's temporary file.
func (b *Batch) Close() { b.records.Close() }

// read checks drafts and splits those that are too long.
func (b *Batch) read(drafts iter.Seq2[Draft, error]) error {
	n, now := 0, time.Now()
	for d, err := range drafts {
		if err != nil {
			return err
		}
		if n == MaxPassages {
			return db.Invalid("more than %d passages are to be inserted; it must be from 1 to %[1]d", MaxPassages)
		}
		dated := d.HappenedAt != nil
		if !dated {
			d.HappenedAt = new(now.Add(time.Duration(n) * time.Microsecond)) // preserves the order
		}
		if err := b.add(d, dated); err != nil {
			return fmt.Errorf("passages[%d]: %w", n, err)
		}
		n++
	}
	if n == 0 {
		return db.Invalid("no passages are to be inserted; it must be from 1 to %d", MaxPassages)
	}
	return nil
}

func (b *Batch) add(d Draft, dated bool) error {
	if err := d.check(); err != nil {
		return err
	}
	if err := d.Check(); err != nil {
		return err
	}
	text, happened := db.Clean(d.Text), *d.HappenedAt
	d.Tags = db.Tags(d.Tags)
	if d.Metadata == nil {
		d.Metadata = json.RawMessage(`{}`)
	}
	if !json.Valid(d.Metadata) {
		return db.Invalid("the metadata is not JSON")
	}
	for i, text := range split(text) {
		d.Text, d.HappenedAt = text, new(happened.Add(time.Duration(i)*time.Microsecond))
		written, err := b.records.add(d)
		if err != nil {
			return err
		}
		p := &piece{id: uuid.New(), sha256: sha256.Sum256([]byte(text)), draft: written, dated: dated}
		if i == 0 && d.Supersedes != "" {
			p.supersedes, b.supersedes = d.Supersedes, true
		}
		b.pieces = append(b.pieces, p)
	}
	return nil
}

// insertAtOnce is how many passages are in memory at a time.
const insertAtOnce = 250

// insert inserts a batch, all or nothing, in the order of the texts' hashes: two requests with texts in common do not
// deadlock.
func (s *Store) insert(ctx context.Context, org db.Org, archiveID string, b *Batch) error {
	ordered := slices.Clone(b.pieces)
	slices.SortStableFunc(ordered, func(p, q *piece) int { return bytes.Compare(p.sha256[:], q.sha256[:]) })
	var archive int64
	var fresh []uuid.UUID
	err := db.Tx(ctx, s.db, func(tx pgx.Tx) (err error) {
		in := s.With(tx)
		rowLock := "KEY SHARE"
		if b.supersedes {
			rowLock = superseding
		}
		if archive, err = in.lock(ctx, org, archiveID, rowLock); err != nil {
			return err
		}
		fresh = nil
		for pieces := range slices.Chunk(ordered, insertAtOnce) {
			ids, err := in.insertPieces(ctx, org, archive, b, pieces)
			if err != nil {
				return err
			}
			fresh = append(fresh, ids...)
		}
		if err := in.endSuperseded(ctx, org, archiveID, b); err != nil {
			return err
		}
		switch len(fresh) {
		case 0:
			return nil
		case 1:
			return in.appendEvents(ctx, org, archive, event.PassageInserted, "passage-"+fresh[0].String())
		}
		return in.appendEvents(ctx, org, archive, event.PassagesInserted, archiveID)
	})
	if err == nil {
		s.search.Words.Grew(org, archive, len(fresh))
	}
	return err
}

// insertPieces inserts the pieces whose texts the archive lacks, and returns their ids. It repeats the statement only
// for texts that another request inserts or deletes at the same time.
func (s *Store) insertPieces(ctx context.Context, org db.Org, archive int64, b *Batch, pieces []*piece) (
	fresh []uuid.UUID, err error) {
	for len(pieces) > 0 {
		var statements pgx.Batch
		var missing []*piece
		for _, p := range pieces {
			var d Draft
			if err := b.records.read(p.draft, &d); err != nil {
				return nil, err
			}
			statements.Queue(insertPassage, d.insertArgs(ctx, org, archive, p)).Query(func(rows pgx.Rows) error {
				stored, err := pgx.CollectRows(rows, pgx.RowToStructByName[Inserted])
				if err != nil {
					return err
				}
				if len(stored) == 0 {
					missing = append(missing, p)
					return nil
				}
				if !stored[0].Duplicate {
					fresh = append(fresh, p.id)
				}
				in := stored[0]
				if in.Duplicate {
					in.LeftTags, in.LeftFields = d.left(in.Passage, p.dated)
				}
				p.left = in.Left()
				p.inserted, err = b.records.add(in)
				return err
			})
		}
		if err := s.db.SendBatch(ctx, &statements).Close(); err != nil {
			return nil, db.Error(err)
		}
		pieces = missing
	}
	if len(fresh) == 0 {
		return nil, nil
	}
	return fresh, s.wait(ctx, org, archive, fresh)
}

const storedColumns = `org, key, id, archive_key, text, tags, metadata, happened_at, created_at, updated_at, valid_from,
	valid_until, superseded_by, provenance`

// insertPassage inserts a text, or finds the passage that has it. It returns no row if another transaction inserts the
// text after the statement begins.
const insertPassage = `
	WITH fresh AS (
		INSERT INTO passages (id, org, archive_key, text, sha256, tags, metadata, happened_at, lex, terms, valid_from,
		                      valid_until, provenance)
		VALUES (@id, @org, @archive, @text, @sum, @tags, @metadata, @happened, @lex, @terms,
		        CASE WHEN @supersedes THEN coalesce(@from, now()) ELSE @from END, @until, @provenance)
		ON CONFLICT ON CONSTRAINT passages_text_key DO NOTHING
		RETURNING ` + storedColumns + `
	), stored AS (
		SELECT * FROM fresh
		UNION ALL
		SELECT ` + storedColumns + `
		FROM passages WHERE org = @org AND archive_key = @archive AND sha256 = @sum
		  AND valid_until IS NOT DISTINCT FROM @until
	)
	SELECT ` + passageColumns + `, p.id <> @id AS duplicate
	FROM stored p JOIN archives c ON c.org = p.org AND c.key = p.archive_key WHERE c.org = @org`

func (d Draft) insertArgs(ctx context.Context, org db.Org, archive int64, p *piece) pgx.StrictNamedArgs {
	lex := lexicon.Document(d.Text)
	return pgx.StrictNamedArgs{"id": p.id, "org": org, "archive": archive, "text": d.Text, "sum": p.sha256[:],
		"tags": d.Tags, "metadata": d.Metadata, "happened": d.HappenedAt, "lex": lex.Vector,
		"terms": lexicon.Owned(archive, lex.Terms), "from": d.ValidFrom, "until": d.ValidUntil,
		"supersedes": d.Supersedes != "", "provenance": db.ProvenanceOf(ctx)}
}

// left returns the tags of a draft that a passage with its text lacks, and the names of its other fields that the
// passage has otherwise. dated reports whether the draft says when it happened.
func (d Draft) left(p Passage, dated bool) (tags, fields []string) {
	for _, tag := range d.Tags {
		if !slices.Contains(p.Tags, tag) {
			tags = append(tags, tag)
		}
	}
	if !isEmptyObject(d.Metadata) && !sameJSON(d.Metadata, p.Metadata) {
		fields = append(fields, "metadata")
	}
	if dated && !d.HappenedAt.Truncate(time.Microsecond).Equal(p.HappenedAt) {
		fields = append(fields, "created_at")
	}
	if d.ValidFrom != nil && (p.ValidFrom == nil || !d.ValidFrom.Truncate(time.Microsecond).Equal(*p.ValidFrom)) {
		fields = append(fields, "valid_from")
	}
	return tags, fields
}

func isEmptyObject(text json.RawMessage) bool { return sameJSON(text, json.RawMessage(`{}`)) }

// sameJSON reports whether two JSON texts have the same value.
func sameJSON(a, b json.RawMessage) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}
