package archival

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/gob"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/event"
	"github.com/loci-memory/loci/embed"
)

// Batch is what became of many drafts: of each, or of each passage that it became, in their order. The caller closes it.
type Batch struct {
	kept  *shelf
	count int
}

// Inserted yields what became of the drafts, once.
func (b *Batch) Inserted() iter.Seq2[Inserted, error] {
	return func(yield func(Inserted, error) bool) {
		in := gob.NewDecoder(io.NewSectionReader(b.kept, 0, b.kept.size))
		for range b.count {
			var p Inserted
			err := in.Decode(&p)
			p.Tags = append([]string{}, p.Tags...) // which gob takes for absent where it is empty
			if !yield(p, err) || err != nil {
				return
			}
		}
	}
}

// Close lets go of what the batch keeps aside.
func (b *Batch) Close() { b.kept.close() }

// pieces are passages to be, put aside: what is in memory of each is where it is kept.
type pieces struct {
	*shelf
	list []piece
}

type piece struct {
	id     uuid.UUID
	sha256 [sha256.Size]byte
	at     int64
	size   int
	draft  int // that it is of
}

// prepare checks drafts, cuts those that are too long, and puts them aside.
func prepare(drafts iter.Seq2[Draft, error]) (_ *pieces, err error) {
	all, n, now := &pieces{shelf: &shelf{}}, 0, time.Now()
	defer func() {
		if err != nil {
			all.close()
		}
	}()
	for d, err := range drafts {
		if err != nil {
			return nil, err
		}
		if n == MaxPassages {
			return nil, db.Invalid("more than %d passages are to be inserted; it must be from 1 to %[1]d", MaxPassages)
		}
		if err := d.check(); err != nil {
			return nil, fmt.Errorf("passages[%d]: %w", n, err)
		}
		d.Text, d.Tags = db.Clean(d.Text), db.Tags(d.Tags)
		if d.Metadata == nil {
			d.Metadata = json.RawMessage(`{}`)
		}
		if d.HappenedAt == nil {
			d.HappenedAt = new(now.Add(time.Duration(n) * time.Microsecond)) // which keeps the order
		}
		if err := all.add(n, d); err != nil {
			return nil, err
		}
		n++
	}
	if n == 0 {
		return nil, db.Invalid("no passages are to be inserted; it must be from 1 to %d", MaxPassages)
	}
	return all, nil
}

// add puts the passages aside that a draft becomes.
func (p *pieces) add(n int, d Draft) error {
	happened := *d.HappenedAt
	for i, text := range split(d.Text) {
		d.Text, d.HappenedAt = text, new(happened.Add(time.Duration(i)*time.Microsecond))
		record, err := json.Marshal(d)
		if err != nil {
			return db.Invalid("passages[%d]: %v", n, err)
		}
		p.list = append(p.list, piece{id: uuid.New(), sha256: sha256.Sum256([]byte(text)), at: p.size, size: len(record), draft: n})
		if _, err := p.Write(record); err != nil {
			return err
		}
	}
	return nil
}

func (p *pieces) read(one piece) (d Draft, err error) {
	record := make([]byte, one.size)
	if _, err := p.ReadAt(record, one.at); err != nil {
		return d, err
	}
	return d, json.Unmarshal(record, &d)
}

// InsertMany is Insert of drafts that are read one by one and put aside on disk; an error among them ends it, and nothing is inserted. The
// database is not asked before all are read.
func (s *Store) InsertMany(ctx context.Context, org db.Org, archiveID string, drafts iter.Seq2[Draft, error]) (*Batch, error) {
	ready, err := prepare(drafts)
	if err != nil {
		return nil, err
	}
	defer ready.close()
	return s.insert(ctx, org, archiveID, ready)
}

func (s *Store) insert(ctx context.Context, org db.Org, archiveID string, ready *pieces) (*Batch, error) {
	out := &Batch{kept: &shelf{}, count: len(ready.list)}
	err := db.Tx(ctx, s.db, func(tx pgx.Tx) error {
		out.Close() // of a try before
		out.kept = &shelf{}
		in := s.With(tx)
		key, err := in.hold(ctx, org, archiveID)
		if err != nil {
			return err
		}
		fresh, err := in.store(ctx, org, key, ready)
		if err != nil {
			return err
		}
		if err := in.inserted(ctx, org, key, ready, fresh, out.kept); err != nil || len(fresh) == 0 {
			return err
		}
		if len(fresh) > 1 {
			return in.tell(ctx, org, key, event.PassagesInserted, archiveID)
		}
		for id := range fresh {
			return in.tell(ctx, org, key, event.PassageInserted, "passage-"+id.String())
		}
		return nil
	})
	if err != nil {
		out.Close()
		return nil, err
	}
	return out, nil
}

// atOnce is how many passages are in hand at a time.
const atOnce = 250

// store writes passages that the archive does not have, and returns their ids. They go in in the order of their hashes: of two requests
// that have texts in common one waits for the other, and never both.
func (s *Store) store(ctx context.Context, org db.Org, archive int64, ready *pieces) (map[uuid.UUID]bool, error) {
	ordered := slices.Clone(ready.list)
	slices.SortStableFunc(ordered, func(a, b piece) int { return bytes.Compare(a.sha256[:], b.sha256[:]) })
	all := make(map[uuid.UUID]bool, len(ordered))
	for some := range slices.Chunk(ordered, atOnce) {
		var batch pgx.Batch
		var fresh []uuid.UUID
		for _, p := range some {
			d, err := ready.read(p)
			if err != nil {
				return nil, err
			}
			lex := embed.Document(d.Text)
			batch.Queue(`
				INSERT INTO passages (id, org, archive_key, text, sha256, tags, metadata, happened_at, lex, terms)
				VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
				ON CONFLICT ON CONSTRAINT passages_text_key DO NOTHING`,
				p.id, org, archive, d.Text, p.sha256[:], d.Tags, d.Metadata, d.HappenedAt, lex.Vector, embed.Owned(archive, lex.Terms)).
				Exec(func(tag pgconn.CommandTag) error {
					if tag.RowsAffected() > 0 {
						fresh, all[p.id] = append(fresh, p.id), true
					}
					return nil
				})
		}
		if err := s.db.SendBatch(ctx, &batch).Close(); err != nil {
			return nil, db.Error(err)
		}
		if len(fresh) > 0 {
			if err := s.wait(ctx, org, archive, fresh); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// inserted writes to out what became of the drafts.
func (s *Store) inserted(ctx context.Context, org db.Org, archive int64, ready *pieces, fresh map[uuid.UUID]bool, out io.Writer) error {
	type row struct {
		Passage
		Sum []byte `db:"sha256"`
	}
	to := gob.NewEncoder(out)
	for some := range slices.Chunk(ready.list, atOnce) {
		sums := make([][]byte, len(some))
		for i := range some {
			sums[i] = some[i].sha256[:]
		}
		rows, err := db.All[row](ctx, s.db, `
			SELECT `+passageColumns+`, p.sha256 FROM passages p JOIN archives c ON c.key = p.archive_key
			WHERE p.org = $1 AND p.archive_key = $2 AND p.sha256 = ANY ($3)`, org, archive, sums)
		if err != nil {
			return err
		}
		bySum := make(map[string]Passage, len(rows))
		for _, r := range rows {
			bySum[string(r.Sum)] = r.Passage
		}
		for _, p := range some {
			stored, ok := bySum[string(p.sha256[:])]
			if !ok {
				return db.Conflict("A passage with the text of passages[%d] was deleted by another request; send this one again", p.draft)
			}
			if err := to.Encode(Inserted{Passage: stored, Duplicate: !fresh[p.id]}); err != nil {
				return err
			}
		}
	}
	return nil
}
