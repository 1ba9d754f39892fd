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
	"github.com/loci-memory/loci/embed/wordindex"
)

// Batch holds many drafts and the passages made from them, in the drafts' order. The caller closes it.
type Batch struct {
	records records
	pieces  []*piece

	supersedes bool // at least one draft supersedes a passage
}

// piece is a draft, or a part of a draft that is too long for one passage. The batch's records hold its content.
type piece struct {
	id              uuid.UUID // the passage's id, unless the archive has the text already
	sha256          [sha256.Size]byte
	draft, inserted record
	left            bool // the draft has something that the archive's passage lacks

	supersedes string // id of the passage that the draft supersedes; set only in the draft's first piece
	dated      bool   // the draft has a HappenedAt
}

// Inserted yields the passages in the drafts' order. A draft that was cut yields several.
func (b *Batch) Inserted() iter.Seq2[Inserted, error] {
	return func(yield func(Inserted, error) bool) {
		for _, p := range b.pieces {
			var inserted Inserted
			err := b.records.read(p.inserted, &inserted)
			if !yield(inserted, err) || err != nil {
				return
			}
		}
	}
}

// Left returns at most most passages that lack something of their drafts (see Inserted.Left), and how many more there
// are.
func (b *Batch) Left(most int) (first []Inserted, more int, err error) {
	for _, p := range b.pieces {
		switch {
		case !p.left:
		case len(first) == most:
			more++
		default:
			var inserted Inserted
			if err := b.records.read(p.inserted, &inserted); err != nil {
				return nil, 0, err
			}
			first = append(first, inserted)
		}
	}
	return first, more, nil
}

// Close removes the batch's temporary file.
func (b *Batch) Close() { b.records.Close() }

// read checks the drafts and splits those that are too long for one passage.
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
			d.HappenedAt = new(now.Add(time.Duration(n) * time.Microsecond)) // keeps the drafts' order
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

// insertAtOnce is how many passages are held in memory at a time.
const insertAtOnce = 250

// insert inserts a batch, all or nothing. It inserts in the order of the texts' hashes, so that two requests with
// common texts do not deadlock.
func (s *Store) insert(ctx context.Context, org db.Org, archiveID string, b *Batch) error {
	ordered := slices.Clone(b.pieces)
	slices.SortStableFunc(ordered, func(p, q *piece) int { return bytes.Compare(p.sha256[:], q.sha256[:]) })
	var archive int64
	var fresh []uuid.UUID
	err := db.Tx(ctx, s.db, func(tx pgx.Tx) (err error) {
		txStore := s.With(tx)
		rowLock := "KEY SHARE"
		if b.supersedes {
			rowLock = superseding
		}
		if archive, err = txStore.lock(ctx, org, archiveID, rowLock); err != nil {
			return err
		}
		if err := txStore.lockTexts(ctx, archive, b); err != nil {
			return err
		}
		fresh = nil
		for pieces := range slices.Chunk(ordered, insertAtOnce) {
			ids, err := txStore.insertPieces(ctx, org, archive, b, pieces)
			if err != nil {
				return err
			}
			fresh = append(fresh, ids...)
		}
		if err := txStore.endSuperseded(ctx, org, archiveID, b); err != nil {
			return err
		}
		switch len(fresh) {
		case 0:
			return nil
		case 1:
			return txStore.appendEvents(ctx, org, archive, event.PassageInserted, "passage-"+fresh[0].String())
		}
		return txStore.appendEvents(ctx, org, archive, event.PassagesInserted, archiveID)
	})
	if err == nil {
		s.search.Words.Grew(org, archive, len(fresh))
	}
	return err
}

// textLocks is how many locks an archive has for texts that say the same.
const textLocks = 16

// lockTexts makes requests that insert texts that say the same wait for each other, until the transaction ends: so the
// second one finds what the first one stored. Many texts take all locks of the archive.
func (s *Store) lockTexts(ctx context.Context, archive int64, b *Batch) error {
	buckets, args := `generate_series(0, `+fmt.Sprint(textLocks-1)+`) AS bucket`, []any{archive}
	if len(b.pieces) < textLocks {
		texts := make([]string, len(b.pieces))
		for i, p := range b.pieces {
			var d Draft
			if err := b.records.read(p.draft, &d); err != nil {
				return err
			}
			texts[i] = d.Text
		}
		buckets = `(SELECT DISTINCT ` + sameHash(`said`, `0`) + ` & ` + fmt.Sprint(textLocks-1) + ` AS bucket
			FROM unnest($2::text[]) AS said ORDER BY bucket) b`
		args = append(args, texts)
	}
	return db.Exec(ctx, s.db, `
		SELECT pg_advisory_xact_lock(hashtextextended('passages ' || $1::bigint, bucket)) FROM `+buckets, args...)
}

// sameHash returns SQL for the hash of what a text says in an archive, as the index passages_same has it.
func sameHash(text, archive string) string {
	return `hashtextextended(same_text(` + text + `), ` + archive + `)`
}

// saysTheSame is the condition that passage p says what @text says, in the same archive and until the same time. The
// conditions on p.org and p.archive_key fit no index, so that Postgres reads passages_same.
var saysTheSame = `p.org = @org::oid AND p.archive_key + 0 = @archive::bigint AND ` +
	sameHash(`p.text`, `p.archive_key`) + ` = ` + sameHash(`@text::text`, `@archive::bigint`) +
	` AND same_text(p.text) = same_text(@text::text)
	AND p.valid_until IS NOT DISTINCT FROM @until::timestamptz`

// insertPieces inserts those pieces that the archive does not have yet, and returns the ids of the new passages. If
// another request inserts or deletes a text at the same time, the statements are repeated for that text.
func (s *Store) insertPieces(ctx context.Context, org db.Org, archive int64, b *Batch, pieces []*piece) (
	fresh []uuid.UUID, err error) {
	size := int64(0)
	for len(pieces) > 0 {
		var statements pgx.Batch
		statements.Queue(wordindex.ByIndexes)
		var missing []*piece
		for _, p := range pieces {
			var d Draft
			if err := b.records.read(p.draft, &d); err != nil {
				return nil, err
			}
			statements.Queue(insertPassage, d.insertArgs(ctx, org, archive, p))
			statements.Queue(storedPassage, pgx.StrictNamedArgs{"id": p.id, "org": org, "archive": archive,
				"sum": p.sha256[:], "until": d.ValidUntil, "text": d.Text}).Query(func(rows pgx.Rows) error {
				stored, err := pgx.CollectRows(rows, pgx.RowToStructByName[Inserted])
				if err != nil {
					return err
				}
				if len(stored) == 0 {
					missing = append(missing, p)
					return nil
				}
				if !stored[0].Duplicate {
					fresh, size = append(fresh, p.id), size+int64(len(d.Text))
				}
				inserted := stored[0]
				if inserted.Duplicate {
					inserted.LeftTags, inserted.LeftFields = d.left(inserted.Passage, p.dated)
				}
				p.left = inserted.Left()
				p.inserted, err = b.records.add(inserted)
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
	if err := db.CheckQuota(ctx, s.db, org, db.QuotaStoredBytes, size); err != nil {
		return nil, err
	}
	return fresh, s.wait(ctx, org, archive, fresh)
}

// insertPassage inserts a text, unless the archive has one that says the same.
var insertPassage = insertDescribed(`
	INSERT INTO passages (id, org, archive_key, text, sha256, tags, metadata, happened_at, lex, terms, valid_from,
	                      valid_until, provenance, language, language_given)
	SELECT @id::uuid, @org::integer, @archive::bigint, @text::text, @sum::bytea, @tags::text[], @metadata::jsonb,
	       @happened::timestamptz, @lex::sparsevec, @terms::bigint[],
	       greatest(@from::timestamptz,
	                now() + CASE WHEN @supersedes AND @from::timestamptz IS NULL THEN interval '0' END),
	       @until::timestamptz, @provenance::jsonb, nullif(@language::text, ''), @given::boolean
	WHERE NOT EXISTS (SELECT FROM passages p WHERE ` + saysTheSame + `)
	ON CONFLICT ON CONSTRAINT passages_text_key DO NOTHING`)

// storedPassage reads the passage that has a text or, if there is none, one that says the same. It returns no row if
// another transaction deleted it meanwhile.
var storedPassage = `
	SELECT ` + db.Named(passageColumns) + `, p.id <> @id AS duplicate
	FROM (
		SELECT * FROM passages p WHERE ` + saysTheSame + `
		ORDER BY p.sha256 = @sum DESC, p.key
		LIMIT 1
	) p JOIN archives c ON c.org = p.org AND c.key = p.archive_key
	WHERE c.org = @org`

func (d Draft) insertArgs(ctx context.Context, org db.Org, archive int64, p *piece) pgx.StrictNamedArgs {
	lex := lexicon.DocumentIn(d.Text, d.Language)
	return pgx.StrictNamedArgs{"id": p.id, "org": org, "archive": archive, "text": d.Text, "sum": p.sha256[:],
		"tags": d.Tags, "metadata": d.Metadata, "happened": d.HappenedAt, "lex": lex.Vector,
		"terms": lexicon.Owned(archive, lex.Terms), "from": d.ValidFrom, "until": d.ValidUntil,
		"supersedes": d.Supersedes != "", "language": lex.Language, "given": d.Language != "",
		"provenance": db.ProvenanceOf(ctx)}
}

// left compares a draft with the stored passage of the same text. It returns the draft's tags that the passage lacks,
// and the names of other fields that differ. dated reports whether the draft has a HappenedAt.
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
	if d.Language != "" && d.Language != p.given() {
		fields = append(fields, "language")
	}
	if d.ValidFrom != nil && (p.ValidFrom == nil || !d.ValidFrom.Truncate(time.Microsecond).Equal(*p.ValidFrom)) {
		fields = append(fields, "valid_from")
	}
	return tags, fields
}

func isEmptyObject(text json.RawMessage) bool { return sameJSON(text, json.RawMessage(`{}`)) }

// sameJSON reports whether two JSON texts have equal values.
func sameJSON(a, b json.RawMessage) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}
