package files

import (
	"context"
	"iter"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
)

// textFile is an attached file whose text can be searched.
type textFile struct {
	Key        int64  `db:"key"`
	ID         string `db:"id"`
	Name       string `db:"name"` // folder/name
	Generation int    `db:"generation"`
	Chars      int64  `db:"chars"`
}

// texts are the files of an agent, by name, narrowed to those that include fits.
type texts struct {
	attached int
	ready    []textFile
	waiting  int // fit, but have no text yet
}

func (s *Store) texts(ctx context.Context, org db.Org, agentID, include string) (texts, error) {
	fits, err := CompileInclude(include)
	if err != nil {
		return texts{}, err
	}
	all, err := db.All[textFile](ctx, s.db, `
		SELECT f.key, f.id, d.name || '/' || f.name AS name, f.generation, f.chars
		FROM agent_folders a JOIN folders d ON d.key = a.folder_key JOIN files f ON f.folder_key = a.folder_key AND f.replaces IS NULL
		WHERE a.org = $1 AND f.org = $1 AND a.agent_id = $2
		ORDER BY (d.name || '/' || f.name) COLLATE "C", f.key`, org, agentID)
	if err != nil {
		return texts{}, err
	}
	t := texts{attached: len(all)}
	for _, f := range all {
		switch {
		case !fits(f.Name):
		case f.Generation == 0:
			t.waiting++
		default:
			t.ready = append(t.ready, f)
		}
	}
	return t, nil
}

// List lists an agent's attached files by name, those that the pattern (a glob or a regular expression on folder/name) fits and that
// are in the named folder; both may be empty.
func (s *Store) List(ctx context.Context, org db.Org, agentID, pattern, folder string, offset, limit int) (Listing, error) {
	fits, err := CompileInclude(pattern)
	if err != nil {
		return Listing{}, err
	}
	names, err := db.All[string](ctx, s.db, `
		SELECT d.name || '/' || f.name AS name
		FROM agent_folders a JOIN folders d ON d.key = a.folder_key JOIN files f ON f.folder_key = a.folder_key AND f.replaces IS NULL
		WHERE a.org = $1 AND f.org = $1 AND a.agent_id = $2 AND ($3 = '' OR d.name = $3)
		ORDER BY (d.name || '/' || f.name) COLLATE "C", f.key`, org, agentID, folder)
	if err != nil {
		return Listing{}, err
	}
	var page []string
	total := 0
	for _, name := range names {
		if !fits(name) {
			continue
		}
		if total >= offset && len(page) < limit {
			page = append(page, name)
		}
		total++
	}
	list, err := s.listed(ctx, org, agentID, page)
	return Listing{Files: list, Total: total}, err
}

func (s *Store) listed(ctx context.Context, org db.Org, agentID string, names []string) ([]Listed, error) {
	if len(names) == 0 {
		return []Listed{}, nil
	}
	args := s.fileArgs(org, false)
	args["agent"], args["names"] = agentID, names
	return db.All[Listed](ctx, s.db, `
		WITH shown AS NOT MATERIALIZED (`+fileRows+`)
		SELECT d.name || '/' || f.name AS file_name, f.status, f.media_type, f.size_bytes, f.lines, coalesce(o.is_open, false) AS is_open
		FROM shown f
		JOIN folders d ON d.id = f.folder_id
		JOIN agent_folders a ON a.folder_key = d.key AND a.agent_id = @agent
		LEFT JOIN agent_files o ON o.org = @org AND o.agent_id = @agent AND o.file_key = f.key
		WHERE d.name || '/' || f.name = ANY (@names)
		ORDER BY (d.name || '/' || f.name) COLLATE "C", f.key`, args)
}

// textBatch is how many characters of text, and how many files, one query of a grep reads.
const (
	textBatchChars = 4 << 20
	textBatchFiles = 2000
)

// batches parts files into runs that are read together.
func batches(list []textFile) [][]textFile {
	var out [][]textFile
	var chars int64
	for i, f := range list {
		if i == 0 || chars+f.Chars > textBatchChars || len(out[len(out)-1]) == textBatchFiles {
			out, chars = append(out, nil), 0
		}
		out[len(out)-1] = append(out[len(out)-1], f)
		chars += f.Chars
	}
	return out
}

// Grep finds the lines of an agent's attached files that match a pattern, and returns a page of them. Files it has open that are on the
// page count as used. ErrInvalid for a pattern, an include or a number of context lines that will not do.
func (s *Store) Grep(ctx context.Context, org db.Org, agentID string, q GrepQuery) (GrepResult, error) {
	pattern, err := Compile(q.Pattern, PatternOptions{CaseSensitive: q.CaseSensitive, Literal: q.Literal})
	if err != nil {
		return GrepResult{}, err
	}
	if err := CheckContext(q.ContextLines); err != nil {
		return GrepResult{}, err
	}
	t, err := s.texts(ctx, org, agentID, q.Include)
	if err != nil {
		return GrepResult{}, err
	}
	g := grep{pattern: pattern, q: q, result: GrepResult{Attached: t.attached, Searched: len(t.ready), Waiting: t.waiting}}
	searching, cancel := context.WithTimeout(ctx, grepPatience)
	defer cancel()
	for _, batch := range batches(t.ready) {
		err := s.grepBatch(searching, org, batch, &g)
		if err != nil && searching.Err() != nil && ctx.Err() == nil {
			return GrepResult{}, db.Invalid("The search took longer than %v. Narrow it with include, or use a simpler pattern.", grepPatience)
		}
		if err != nil {
			return GrepResult{}, err
		}
		if g.result.Capped {
			break
		}
	}
	slices.SortStableFunc(g.result.Files, func(a, b FileCount) int { return b.Matches - a.Matches })
	if err := s.addPages(ctx, org, g.used, g.result.Matches); err != nil {
		return GrepResult{}, err
	}
	return g.result, s.use(ctx, org, agentID, g.used)
}

// grepPatience bounds one search (Letta: 30 s).
const grepPatience = 30 * time.Second

// grep is a search on its way through the files.
type grep struct {
	pattern *Pattern
	q       GrepQuery
	result  GrepResult
	used    []string // ids of the files on the page
}

// grepBatch searches a run of files, whose segments one query yields file after file.
func (s *Store) grepBatch(ctx context.Context, org db.Org, batch []textFile, g *grep) error {
	keys := make([]int64, len(batch))
	for i, f := range batch {
		keys[i] = f.Key
	}
	rows, err := s.db.Query(ctx, `
		SELECT n.ord, g.ordinal, g.first_line, g.lines, g.continues, g.text
		FROM unnest($2::bigint[]) WITH ORDINALITY AS n (key, ord)
		JOIN file_segments g ON g.file_key = n.key
		WHERE g.org = $1
		ORDER BY n.ord, g.ordinal`, org, keys)
	if err != nil {
		return err
	}
	defer rows.Close()
	stream := segmentStream{rows: rows}
	for stream.next(); stream.err == nil && stream.file > 0 && !g.result.Capped; {
		file := stream.file
		if err := g.search(batch[file-1], stream.of(file)); err != nil {
			return err
		}
		for stream.err == nil && stream.file == file { // what a search did not need
			stream.next()
		}
	}
	return stream.err
}

// search searches one file and adds what it found.
func (g *grep) search(f textFile, segments iter.Seq2[Segment, error]) error {
	found, err := g.pattern.File(segments, MatchRange{Context: g.q.ContextLines, Skip: max(g.q.Offset-g.result.Total, 0),
		Take: GrepPage - len(g.result.Matches), Cap: GrepCap - g.result.Total})
	if err != nil || found.Total == 0 && !found.More {
		return err
	}
	g.result.Total += found.Total
	g.result.Capped = found.More
	if found.Total > 0 {
		g.result.Files = append(g.result.Files, FileCount{FileName: f.Name, Matches: found.Total})
	}
	for _, m := range found.Matches {
		g.result.Matches = append(g.result.Matches, GrepMatch{FileName: f.Name, Line: m.Line, Text: m.Text, Before: m.Before, After: m.After})
	}
	if len(found.Matches) > 0 {
		g.used = append(g.used, f.ID)
	}
	return nil
}

// segmentStream reads segments of one file after the other.
type segmentStream struct {
	rows    pgx.Rows
	file    int64 // 1-based place of the file that segment is of; 0 at the end
	segment Segment
	err     error
}

func (s *segmentStream) next() {
	if !s.rows.Next() {
		s.file, s.err = 0, s.rows.Err()
		return
	}
	g := &s.segment
	s.err = s.rows.Scan(&s.file, &g.Ordinal, &g.FirstLine, &g.Lines, &g.Continues, &g.Text)
}

// of yields the segments of one file, from the present one.
func (s *segmentStream) of(file int64) iter.Seq2[Segment, error] {
	return func(yield func(Segment, error) bool) {
		for s.err == nil && s.file == file {
			if !yield(s.segment, nil) {
				return
			}
			s.next()
		}
		if s.err != nil {
			yield(Segment{}, s.err)
		}
	}
}
