// Package wordindex ranks the rows of a memory by words, through an inverted index of the weights that the rows store.
// The index is made in the background, in segments of the rows of one owner. Rows without a segment are ranked from the
// rows themselves, so that the answers are the same with and without the index. Its tables are word_segments,
// word_postings and word_changes.
// Each file uses only the files named before it:
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
	firstRows   = 2_000   // rows of an owner; fewer rows are ranked fast without an index
	newRows     = 500     // since the last segment, that make a new one
	segmentRows = 16_384  // of the largest segment
	maxSize     = 4 << 20 // postings of a segment; each takes 8 bytes while the segment is made
	maxLoose    = 4_000   // most rows without a segment for a search to use the index
)

// Index is the index of one memory's rows. Set the fields before the first use; then it is safe for concurrent use.
type Index struct {
	Rows     string // the table of the rows, with the columns org and key and those below
	Searched string // the table or view with the columns org, key and lex; a key may have several rows there
	Owner    string // the column of Rows with the owner's key; word_segments has it, too
	Place    string // the column of Rows that orders an owner's rows by arrival

	FirstRows   int // an owner with fewer rows is not indexed
	NewRows     int // since the last segment, that make a new one
	SegmentRows int // of the largest segment
	CachedBytes int // of segments, in memory

	Wait time.Duration // most time to wait for writing transactions before a segment is made

	cache cache

	mu    sync.Mutex
	wrote map[scope]int // rows since the owner was last looked at
	due   map[scope]bool
}

// New returns the index of a table's rows. Their weights are in searched.
func New(rows, searched, owner, place string) *Index {
	return &Index{Rows: rows, Searched: searched, Owner: owner, Place: place,
		FirstRows: firstRows, NewRows: newRows, SegmentRows: segmentRows, CachedBytes: cachedBytes,
		Wait: writerWait}
}

// scope is the rows that are indexed together: those of one owner.
type scope struct {
	org   db.Org
	owner int64
}

// maxWrote limits the owners with new rows that are counted. A search notices the rows that are not counted.
const maxWrote = 100_000

// Grew counts new rows of an owner. Once there are enough, Update looks at the owner.
func (x *Index) Grew(org db.Org, owner int64, rows int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	target := scope{org, owner}
	if x.wrote == nil || len(x.wrote) >= maxWrote {
		x.wrote = map[scope]int{}
	}
	if x.wrote[target] += rows; x.wrote[target] >= x.NewRows {
		delete(x.wrote, target)
		x.setDue(target)
	}
}

// setDue makes Update look at an owner. The caller holds x.mu.
func (x *Index) setDue(of scope) {
	if x.due == nil {
		x.due = map[scope]bool{}
	}
	x.due[of] = true
}

// lookAt makes Update look at owners.
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

// Update indexes new rows of the owners that grew, and of those for which a search missed segments. It returns how many
// segments it made. Several servers may call it at once; only one works on an owner.
func (x *Index) Update(ctx context.Context, d db.DB) (segments int, err error) {
	due := x.takeDue()
	for i, target := range due {
		n, err := x.build(ctx, d, target, nil)
		if segments += n; err != nil {
			for _, undone := range due[i:] {
				x.lookAt(undone.org, []int64{undone.owner})
			}
			return segments, fmt.Errorf("index the words of %s %d: %w", x.Owner, target.owner, err)
		}
	}
	return segments, nil
}

// Prune makes segments again in which a row changed or a fifth of the rows was deleted. It returns how many it made.
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

// stale returns owner → keys of the segments that Prune makes again. An owner with changes outside all segments has an
// empty list.
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

// Note notes that rows get other words or are erased. Call it in the transaction that does so. Until Prune has made
// their segments again, they are ranked from the rows themselves.
func (x *Index) Note(ctx context.Context, tx db.DB, org db.Org, keys ...int64) error {
	_, err := tx.Exec(ctx, x.sql(`
		INSERT INTO word_changes (org, OWNER, place)
		SELECT r.org, r.OWNER, r.PLACE FROM ROWS r WHERE r.org = $1 AND r.key = ANY ($2)`), org, keys)
	return db.Error(err)
}

// sql puts the names of the index's tables and columns into a statement.
func (x *Index) sql(statement string) string {
	return strings.NewReplacer("ROWS", x.Rows, "SEARCHED", x.Searched, "OWNER", x.Owner, "PLACE", x.Place).
		Replace(statement)
}
