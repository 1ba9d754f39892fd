package files

import (
	"cmp"
	"context"
	"slices"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed"
)

// readAhead is how many chunks a search reads for each wanted hit: some of them overlap, and become one.
const readAhead = 2

// maxMerged is the most chunks that become one hit.
const maxMerged = 3

// part is a chunk that was found.
type part struct {
	Hit
	FileKey      int64 `db:"file_key"`
	OverlapBytes int   `db:"overlap_bytes"`
}

// mergedHits reads the best chunks of a ranking, ranks the first by how near they have the query's words to each other,
// and makes one hit of those that overlap: the text of a file is shown once. It leaves out the first offset hits, and
// returns at most limit; more reports whether there are others.
func (s *Store) mergedHits(ctx context.Context, org db.Org, ranking embed.Ranking, offset, limit int) (hits []Hit,
	more bool, err error) {
	var groups [][]part
	ranked := ranking.Rows
	for wanted := offset + limit + 1; len(groups) < wanted && len(ranked) > 0; {
		n := min(max(readAhead*wanted, embed.NearRows), len(ranked))
		parts, err := embed.ReadHits[part](ctx, s.db, embed.HitQuery[part]{Org: org, Limit: n, SQL: readParts,
			Keep: confirm(ranking)}, ranked[:n])
		if err != nil {
			return nil, false, err
		}
		if len(groups) == 0 {
			rankByNearness(ranking, parts[:min(embed.NearRows, len(parts))])
		}
		groups, ranked = grouped(groups, parts), ranked[n:]
	}
	more = len(groups) > offset+limit
	hits, best := []Hit{}, 0.0
	if len(groups) > 0 {
		best = groups[0][0].Score
	}
	for _, group := range groups[min(offset, len(groups)):min(offset+limit, len(groups))] {
		hit := merged(group)
		hit.Score = ranking.Calibrated(hit.Score, best)
		hits = append(hits, hit)
	}
	return hits, more, nil
}

var readParts = `
	SELECT c.key, f.id AS file_id, d.id AS folder_id, d.name || '/' || f.name AS file_name, c.ordinal,
	       c.first_line, c.last_line, c.first_page, c.last_page, f.media_type, c.heading, c.text, c.file_key,
	       c.overlap_bytes, ` + embed.HitColumns + `
	FROM ` + embed.HitTable + embed.KeyedRow("chunks", "hit.key") + ` c` + embed.KeyedRow("files", "c.file_key") + ` f` +
	embed.KeyedRow("folders", "c.folder_key") + ` d
	WHERE d.deleted_at IS NULL
	ORDER BY hit.place`

// confirm returns a function that reports whether a chunk of a ranking is a hit.
func confirm(ranking embed.Ranking) func(*part) (bool, error) {
	return func(p *part) (bool, error) {
		return ranking.Confirm(p.searchable(), &p.WordsRank, p.MeaningRank), nil
	}
}

// rankByNearness adds to the scores of chunks what they gain by having the query's words near each other, and sorts
// them, best first.
func rankByNearness(ranking embed.Ranking, parts []part) {
	for i, p := range parts {
		parts[i].Near = ranking.Near(p.Heading + "\n" + p.Text)
		parts[i].Score += parts[i].Near
	}
	slices.SortStableFunc(parts, func(a, b part) int { return cmp.Compare(b.Score, a.Score) })
}

// grouped adds chunks, the best first, to groups of chunks that overlap. A group has the place of its best chunk.
func grouped(groups [][]part, parts []part) [][]part {
	for _, p := range parts {
		i := slices.IndexFunc(groups, func(group []part) bool {
			return len(group) < maxMerged && slices.ContainsFunc(group, p.overlaps)
		})
		if i < 0 {
			groups = append(groups, []part{p})
		} else {
			groups[i] = append(groups[i], p)
		}
	}
	return groups
}

// overlaps reports whether the end of one chunk is the beginning of the other.
func (p part) overlaps(other part) bool {
	return p.FileKey == other.FileKey && (p.Ordinal == other.Ordinal+1 && p.OverlapBytes > 0 ||
		other.Ordinal == p.Ordinal+1 && other.OverlapBytes > 0)
}

// merged returns the hit of chunks that overlap: with the id, the score and the ranks of the best, which is the first,
// and the text of all.
func merged(group []part) Hit {
	hit := group[0].Hit
	slices.SortFunc(group, func(a, b part) int { return a.Ordinal - b.Ordinal })
	first, last := group[0], group[len(group)-1]
	hit.FirstLine, hit.FirstPage, hit.Heading = first.FirstLine, first.FirstPage, first.Heading
	hit.LastLine, hit.LastPage = last.LastLine, last.LastPage
	hit.Text = ""
	for i, p := range group {
		if i > 0 {
			p.Text = p.Text[min(p.OverlapBytes, len(p.Text)):]
		}
		hit.Text += p.Text
	}
	return hit
}
