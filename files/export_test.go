package files

import (
	"context"
	"fmt"
	"iter"
	"regexp/syntax"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed"
)

// SetIndexRows changes the size of a scope above which it is read through the indexes.
func (s *Store) SetIndexRows(n int) { s.indexRows = n }

// NearestSQL is the statement that ranks a scope by meaning.
func NearestSQL(space embed.Space, exact bool) string { return nearestSQL(space, exact) }

// The statements that rank a scope by words.
const (
	WordsExact   = wordsExact
	WordsIndexed = wordsIndexed
)

// FileMatches is what a search found in one file.
type FileMatches struct {
	Total   int  // matching lines, at most Cap
	More    bool // there are more than Cap
	Matches []Match
}

// MatchRange says which matching lines of a file are wanted: Take of them, after Skip, each with Context lines before and after it.
type MatchRange struct{ Context, Skip, Take, Cap int }

// File searches one file as Grep does.
func (p *Pattern) File(segments iter.Seq2[Segment, error], want MatchRange) (FileMatches, error) {
	matches, err := p.matchIn(segments, want.Cap+1)
	if err != nil {
		return FileMatches{}, err
	}
	found := FileMatches{Total: min(len(matches), want.Cap), More: len(matches) > want.Cap}
	matches = matches[:found.Total]
	for _, m := range matches[min(want.Skip, len(matches)):min(want.Skip+want.Take, len(matches))] {
		if want.Context > 0 {
			if m.Before, m.After, err = linesAround(segments, m.Line, want.Context); err != nil {
				return FileMatches{}, err
			}
		}
		found.Matches = append(found.Matches, m)
	}
	return found, nil
}

// Required is what the pattern asks of the index; empty if nothing.
func (p *Pattern) Required() string {
	if p.grams == nil {
		return ""
	}
	return p.grams.required.String()
}

func (r *required) String() string {
	if r.text != "" {
		return fmt.Sprintf("%q", r.text)
	}
	parts, sign := r.all, " & "
	if len(r.any) > 0 {
		parts, sign = r.any, " | "
	}
	list := make([]string, len(parts))
	for i, p := range parts {
		list[i] = p.String()
	}
	return "(" + strings.Join(list, sign) + ")"
}

// MayMatch tells whether the index takes a unit of this text for one that may match.
func (p *Pattern) MayMatch(text string) bool {
	if p.grams == nil {
		return true
	}
	set := new(gramSet)
	set.add(text)
	all := gramRows([]*gramSet{set})
	rows := make([][]byte, len(p.grams.buckets))
	for i, b := range p.grams.buckets {
		rows[i] = all[b : b+1]
	}
	return p.grams.units(rows)[0] == 1
}

// RequiredBy reads what a pattern asks of the index.
func RequiredBy(pattern string) bool {
	tree, err := syntax.Parse(pattern, syntax.Perl)
	return err == nil && queryOf(requiredBy(tree)) != nil
}

// IndexUnit does what the index does with the text of a unit.
func IndexUnit(text string) { new(gramSet).add(text) }

// SetGramDue changes how much text of a folder is indexed together.
func (s *Store) SetGramDue(chars int64) { s.gramDue = chars }

// PurgeOnce clears some of a deleted folder away.
func PurgeOnce(s *Store, ctx context.Context, job PurgeArgs) (done bool, err error) {
	return s.purge(ctx, job)
}

// ByMeaning ranks the chunks of folders, a scope of so many rows, by their vectors.
func ByMeaning(s *Store, ctx context.Context, org db.Org, folders []int64, rows int, vector []float32, limit int) ([]embed.Hit, error) {
	return s.byMeaning(ctx, scope{org: org, folders: folders}, rows, vector, limit)
}

// AgentFilesSQL is the statement that lists a page of an agent's files, and adds to its arguments.
func AgentFilesSQL(p db.Page, args pgx.StrictNamedArgs) string { return agentFilesSQL(p, nil, args) }
