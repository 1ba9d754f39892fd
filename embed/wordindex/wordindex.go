// Package wordindex ranks the rows of a memory by words, through an inverted index of the weights that the rows store.
// The index is made in the background, in segments of the rows of one owner; what no segment has is ranked from the
// rows themselves, so that the answers are the same with the index and without it. Its tables are word_segments,
// word_postings and word_changes.
//
// Each file uses those that are named before it:
//   - the parts of segments: keys.go postings.go cache.go
//   - the index, and the scores of rows: wordindex.go workspace.go match.go
//   - how segments are made: vocabulary.go build.go
//   - the rows that a search wants: ranges.go best.go condition.go
package wordindex

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/loci-memory/loci/db"
)

// Sizes of the index.
const (
	firstRows   = 2_000   // of an owner; fewer are ranked fast without an index
	newRows     = 500     // since the last segment, that make a new one
	segmentRows = 16_384  // of the largest segment
	maxSize     = 4 << 20 // postings of a segment; a posting takes 8 bytes while the segment is made
	maxLoose    = 4_000   // rows without a segment, with which a search still uses the index
)

// Index is the index of one memory's rows. Set the fields before the first use; it is then safe for concurrent use.
type Index struct {
	Rows     string // the table of the rows, with the columns org, key and those below
	Searched string // the table or view with the columns org, key and lex; a key may have several rows there
	Owner    string // the column of Rows with the owner's key; word_segments has it, too
	Place    string // the column of Rows that orders an owner's rows in the order in which they came

	FirstRows   int // an owner of fewer rows is not indexed
	NewRows     int // since the last segment, that make a new one
	SegmentRows int // of the largest segment
	CachedBytes int // of segments, in memory

	Wait time.Duration // at most, for the transactions that write, before a segment is made

	cache cache

	mu    sync.Mutex
	wrote map[scope]int // rows since the owner was last looked at
	due   map[scope]bool
}

// New returns the index of a table's rows, whose weights are in Searched.
func New(rows, searched, owner, place string) *Index {
	return &Index{Rows: rows, Searched: searched, Owner: owner, Place: place,
		FirstRows: firstRows, NewRows: newRows, SegmentRows: segmentRows, CachedBytes: cachedBytes,
		Wait: writerWait}
}

// scope is the rows that the index has together.
type scope struct {
	org   db.Org
	owner int64
}

// maxWrote bounds the owners whose new rows are counted. What is not counted is noticed by a search.
const maxWrote = 100_000

// Grew counts rows that were written for an owner: once there are enough, Update looks at it.
func (x *Index) Grew(org db.Org, owner int64, rows int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	of := scope{org, owner}
	if x.wrote == nil || len(x.wrote) >= maxWrote {
		x.wrote = map[scope]int{}
	}
	if x.wrote[of] += rows; x.wrote[of] >= x.NewRows {
		delete(x.wrote, of)
		x.setDue(of)
	}
}

// setDue lets Update look at an owner. The caller holds x.mu.
func (x *Index) setDue(of scope) {
	if x.due == nil {
		x.due = map[scope]bool{}
	}
	x.due[of] = true
}

// lookAt lets Update look at owners.
func (x *Index) lookAt(org db.Org, owners []int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, owner := range owners {
		x.setDue(scope{org, owner})
	}
}

// takeDue returns the owners to look at, and forgets them.
func (x *Index) takeDue() []scope {
	x.mu.Lock()
	defer x.mu.Unlock()
	due := slices.Collect(maps.Keys(x.due))
	clear(x.due)
	return due
}

// Update indexes new rows of the owners that grew, or that a search found to lack segments, and returns how many
// segments it made. Several servers may call it at once; only one works on an owner.
func (x *Index) Update(ctx context.Context, d db.DB) (segments int, err error) {
	due := x.takeDue()
	for i, of := range due {
		n, err := x.build(ctx, d, of, nil)
		if segments += n; err != nil {
			for _, left := range due[i:] {
				x.lookAt(left.org, []int64{left.owner})
			}
			return segments, fmt.Errorf("index the words of %s %d: %w", x.Owner, of.owner, err)
		}
	}
	return segments, nil
}

// Prune makes the segments anew in which a row changed, or of whose rows a fifth is deleted, and returns how many it
// made.
func (x *Index) Prune(ctx context.Context, d db.DB) (segments int, err error) {
	orgs, err := db.Orgs(ctx, d)
	if err != nil {
		return 0, err
	}
	for _, org := range orgs {
		n, err := x.pruneOrg(ctx, d, org)
		if segments += n; err != nil {
			return segments, err
		}
	}
	return segments, nil
}

// pruneOrg is Prune for one organization.
func (x *Index) pruneOrg(ctx context.Context, d db.DB, org db.Org) (segments int, err error) {
	stale, err := x.stale(ctx, d, org)
	if err != nil {
		return 0, fmt.Errorf("find stale segments of words: %w", err)
	}
	for owner, keys := range stale {
		n, err := x.build(ctx, d, scope{org, owner}, keys)
		if segments += n; err != nil {
			return segments, fmt.Errorf("index the words of %s %d anew: %w", x.Owner, owner, err)
		}
	}
	return segments, nil
}

// stale returns the keys of the segments that Prune makes anew, by their owners; of an owner with changes in no
// segment, an empty list.
func (x *Index) stale(ctx context.Context, d db.DB, org db.Org) (map[int64][]int64, error) {
	type row struct {
		Owner   int64  `db:"owner"`
		Segment *int64 `db:"segment"`
	}
	rows, err := db.All[row](ctx, d, x.sql(`
		SELECT c.OWNER AS owner, s.key AS segment
		FROM word_changes c LEFT JOIN word_segments s ON s.org = c.org AND s.OWNER = c.OWNER
			AND c.place > s.after_place AND c.place <= s.until_place
		WHERE c.org = $1 AND c.OWNER IS NOT NULL
		UNION
		SELECT s.OWNER, s.key FROM word_segments s
		WHERE s.org = $1 AND s.OWNER IS NOT NULL AND 4 * s.rows > 5 * (
			SELECT count(*) FROM ROWS r
			WHERE r.org = $1 AND r.OWNER = s.OWNER AND r.PLACE > s.after_place AND r.PLACE <= s.until_place)`), org)
	stale := map[int64][]int64{}
	for _, r := range rows {
		stale[r.Owner] = append(stale[r.Owner], deref(r.Segment)...)
	}
	return stale, err
}

func deref(key *int64) []int64 {
	if key == nil {
		return nil
	}
	return []int64{*key}
}

// Note notes, in the transaction that does it, that rows get other words, or are erased. Until Prune has made their
// segments anew, they are ranked from the rows themselves.
func (x *Index) Note(ctx context.Context, tx db.DB, org db.Org, keys ...int64) error {
	_, err := tx.Exec(ctx, x.sql(`
		INSERT INTO word_changes (org, OWNER, place)
		SELECT r.org, r.OWNER, r.PLACE FROM ROWS r WHERE r.org = $1 AND r.key = ANY ($2)`), org, keys)
	return db.Error(err)
}

// sql names the index's tables and columns in a statement.
func (x *Index) sql(statement string) string {
	return strings.NewReplacer("ROWS", x.Rows, "SEARCHED", x.Searched, "OWNER", x.Owner, "PLACE", x.Place).
		Replace(statement)
}
