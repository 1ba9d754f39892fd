package files

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"unicode"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed/rank"
)

// readAhead is how many chunks a search reads per wanted hit, because chunks that overlap become one hit.
const readAhead = 2

// maxMergedBytes is the longest text of a hit merged from chunks: about 1,000 tokens of English, or 1,300 of Chinese.
const maxMergedBytes = 4_000

// part is a chunk that was found.
type part struct {
	Hit
	FileKey      int64 `db:"file_key"`
	OverlapBytes int   `db:"overlap_bytes"`
}

// mergedHits reads the best chunks of a ranking, and ranks the first ones again by how near to each other they have the
// query's words. It merges chunks that overlap into one hit, up to maxMergedBytes, so that a text is shown once. It
// skips the first offset hits, and returns at most limit. more reports whether there are others.
func (s *Store) mergedHits(ctx context.Context, org db.Org, ranking rank.Ranking, offset, limit int) (hits []Hit,
	more bool, err error) {
	var groups [][]part
	ranked := ranking.Rows
	for wanted := offset + limit + 1; len(groups) < wanted && len(ranked) > 0; {
		n := min(max(readAhead*wanted, rank.NearRows), len(ranked))
		parts, err := rank.ReadHits[part](ctx, s.db, rank.HitQuery[part]{Org: org, Limit: n, SQL: readParts,
			Keep: confirm(ranking)}, ranked[:n])
		if err != nil {
			return nil, false, err
		}
		if len(groups) == 0 { // a later page finds the same groups, because its first chunks are the same
			first := min(rank.NearRows, len(parts))
			rankByText(ctx, ranking, parts[:first])
			groups, parts = joined(grouped(nil, parts[:first])), parts[first:]
		}
		groups, ranked = grouped(groups, parts), ranked[n:]
	}
	more = len(groups) > offset+limit
	hits, best := []Hit{}, 0.0
	if len(groups) > 0 {
		best = groups[0][0].Score
	}
	for i := min(offset, len(groups)); i < min(offset+limit, len(groups)); i++ {
		hit := merged(groups[i], groups[:i])
		hit.Score, hit.scale = ranking.Calibrated(hit.Score, best), ranking.Calibrated(1, best)
		hit.ranked = groups[i][0].searchable()
		hits = append(hits, hit)
	}
	return hits, more, nil
}

var readParts = `
	SELECT c.key, f.id AS file_id, d.id AS folder_id, d.name || '/' || f.name AS file_name, c.ordinal,
	       c.first_line, c.last_line, c.first_page, c.last_page, f.media_type, c.heading, c.text, c.file_key,
	       c.overlap_bytes, ` + rank.HitColumns + `
	FROM ` + rank.HitTable + rank.KeyedRow("chunks", "hit.key") + ` c` + rank.KeyedRow("files", "c.file_key") + ` f` +
	rank.KeyedRow("folders", "c.folder_key") + ` d
	WHERE d.deleted_at IS NULL
	ORDER BY hit.place`

// confirm returns a function that reports whether a ranked chunk is a hit.
func confirm(ranking rank.Ranking) func(*part) (bool, error) {
	return func(p *part) (bool, error) {
		return ranking.Confirm(p.searchable(), &p.WordsRank, p.MeaningRank), nil
	}
}

// rankByText adds to each chunk's score what it gains by having the query's words near each other. It sorts the chunks,
// best first, and lets the reranker reorder the first ones.
func rankByText(ctx context.Context, ranking rank.Ranking, parts []part) {
	for i, p := range parts {
		parts[i].Near = ranking.Near(p.Heading + "\n" + p.Text)
		parts[i].Score += parts[i].Near
	}
	slices.SortStableFunc(parts, func(a, b part) int { return cmp.Compare(b.Score, a.Score) })
	judged := func(p part) rank.Judged { return rank.Judged{Key: p.ChunkKey, Text: p.searchable()} }
	rank.Rerank(ctx, ranking, parts, judged, func(p *part) *float64 { return &p.Score })
}

// grouped adds chunks, best first, to groups of chunks that overlap. A group has the place of its best chunk.
func grouped(groups [][]part, parts []part) [][]part {
	for _, p := range parts {
		i := slices.IndexFunc(groups, func(group []part) bool { return joins(group, []part{p}) })
		if i < 0 {
			groups = append(groups, []part{p})
		} else {
			groups[i] = append(groups[i], p)
		}
	}
	return groups
}

// joined merges groups that now overlap because a chunk was added that overlaps with both.
func joined(groups [][]part) [][]part {
	for i := 0; i < len(groups); i++ {
		for k := i + 1; k < len(groups); k++ {
			if joins(groups[i], groups[k]) {
				groups[i], groups = append(groups[i], groups[k]...), slices.Delete(groups, k, k+1)
				k = i // a group that did not overlap before may overlap now
			}
		}
	}
	return groups
}

// joins reports whether two groups overlap and together are short enough.
func joins(a, b []part) bool {
	return mergedBytes(slices.Concat(a, b)) <= maxMergedBytes && slices.ContainsFunc(a, func(p part) bool {
		return slices.ContainsFunc(b, p.overlaps)
	})
}

// mergedBytes returns the length of a group's text.
func mergedBytes(group []part) (n int) {
	first := group[0]
	for _, p := range group {
		n += len(p.Text) - p.OverlapBytes
		if p.Ordinal < first.Ordinal {
			first = p
		}
	}
	return n + first.OverlapBytes
}

// overlaps reports whether the end of one chunk is the beginning of the other.
func (p part) overlaps(other part) bool {
	return p.FileKey == other.FileKey && (p.Ordinal == other.Ordinal+1 && p.OverlapBytes > 0 ||
		other.Ordinal == p.Ordinal+1 && other.OverlapBytes > 0)
}

// merged returns the hit for chunks that overlap. It has the id, the score and the ranks of the best chunk, which is
// the first in group, and the text of all chunks. It leaves out text that an earlier group shows, and blank lines at
// both ends.
func merged(group []part, before [][]part) Hit {
	hit := group[0].Hit
	group = slices.SortedFunc(slices.Values(group), func(a, b part) int { return a.Ordinal - b.Ordinal })
	first, last := group[0], group[len(group)-1]
	hit.FirstPage, hit.Heading, hit.LastPage = first.FirstPage, first.Heading, last.LastPage
	var text strings.Builder
	for i, p := range group {
		if i > 0 {
			p.Text = p.Text[min(p.OverlapBytes, len(p.Text)):]
		}
		text.WriteString(p.Text)
	}
	head, tail := 0, 0 // bytes that the neighbors have, too
	for _, p := range slices.Concat(before...) {
		switch {
		case p.FileKey != first.FileKey:
		case p.Ordinal == first.Ordinal-1:
			head = first.OverlapBytes
		case p.Ordinal == last.Ordinal+1:
			tail = p.OverlapBytes
		}
	}
	whole := text.String()
	if head+tail < len(whole) && strings.TrimSpace(whole[head:len(whole)-tail]) != "" {
		hit.Text = whole[head : len(whole)-tail]
	} else {
		head, hit.Text = 0, whole
	}
	blank := len(hit.Text) - len(strings.TrimLeft(hit.Text, "\n"))
	hit.Text = strings.TrimRightFunc(hit.Text[blank:], unicode.IsSpace)
	hit.FirstLine = first.FirstLine + strings.Count(whole[:head+blank], "\n")
	hit.LastLine = hit.FirstLine + strings.Count(hit.Text, "\n")
	return hit
}
