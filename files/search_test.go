package files_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/pgvector/pgvector-go"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/db/dbtest/scale"
	"github.com/loci-memory/loci/embed"
	"github.com/loci-memory/loci/embed/embedtest"
	"github.com/loci-memory/loci/embed/endpoint"
	"github.com/loci-memory/loci/embed/lexicon"
	"github.com/loci-memory/loci/files"
)

// stock fills a new folder with one file of n chunks. text gives each chunk's text. If space is not nil, each chunk
// also gets a vector.
func (fx *fixture) stock(name string, n int, space *endpoint.Space, text func(i int) string) files.Folder {
	fx.t.Helper()
	folder := fx.folder(name)
	var file int64
	err := fx.pool.QueryRow(fx.t.Context(), `
		INSERT INTO files (org, folder_key, name, original_name, media_type, size_bytes, sha256, generation, chunks, lines)
		VALUES ($1, $2, 'stock.txt', 'stock.txt', 'text/plain', 0, '', 1, $3, $3) RETURNING key`, fx.org, folder.Key, n).
		Scan(&file)
	if err != nil {
		fx.t.Fatal(err)
	}
	rows := pgx.CopyFromSlice(n, func(i int) ([]any, error) {
		lex := lexicon.Document(text(i))
		return []any{file, 1, i, fx.org, folder.Key, i + 1, i + 1, 0, 0, "", text(i), lex.Vector, lex.Terms}, nil
	})
	columns := []string{"file_key", "generation", "ordinal", "org", "folder_key", "first_line", "last_line", "start_byte",
		"overlap_bytes", "heading", "text", "lex", "terms"}
	if _, err := fx.pool.CopyFrom(fx.t.Context(), pgx.Identifier{"chunks"}, columns, rows); err != nil {
		fx.t.Fatal(err)
	}
	if space == nil {
		return folder
	}
	keys, err := db.All[int64](fx.t.Context(), fx.pool, `
		SELECT key FROM chunks WHERE file_key = $1 ORDER BY ordinal`, file)
	if err != nil {
		fx.t.Fatal(err)
	}
	vectors := pgx.CopyFromSlice(n, func(i int) ([]any, error) {
		return []any{space.ID, keys[i], fx.org, folder.Key,
			pgvector.NewHalfVector(embed.Normalize(embedtest.Direction(text(i), space.Dimension)))}, nil
	})
	columns = []string{"space_id", "chunk_key", "org", "folder_key", "embedding"}
	if _, err := fx.pool.CopyFrom(fx.t.Context(), pgx.Identifier{"chunk_vectors"}, columns, vectors); err != nil {
		fx.t.Fatal(err)
	}
	return folder
}

// Many agents have hundreds of chunks each, all on the same topic. Each finds k of its own, by words and by meaning.
func TestEachAgentFindsItsOwnInACrowd(t *testing.T) {
	scale.NotRaced(t)
	t.Parallel()
	fx, _, space := newDenseFixture(t, 32)
	agents, chunks := make([]string, scale.Of(5, 20)), scale.Of(400, 1000)
	for a := range agents {
		folder := fx.stock(fmt.Sprint("folder-", a), chunks, &space,
			func(i int) string { return fmt.Sprintf("harbour report %d of ship %d", i, a) })
		agents[a] = fx.agentWith(folder)
	}
	for a, agent := range agents {
		got, err := fx.Search(t.Context(), fx.org, files.Of(agent), files.Query{Text: "report on the harbour", Limit: 20})
		if err != nil || len(got.Hits) != 20 {
			t.Fatalf("agent %d: got %d hits (%v), want 20", a, len(got.Hits), err)
		}
		for _, h := range got.Hits {
			if h.FileName != fmt.Sprintf("folder-%d/stock.txt", a) {
				t.Errorf("agent %d found %s", a, h.FileName)
			}
		}
	}
}

// The pages of a search add up to what one large page has.
func TestPagesOfASearch(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	agent := fx.agentWith(fx.stock("f", 11, nil, func(i int) string { return fmt.Sprintf("apple %d", i) }))
	q := files.Query{Text: "apple", Limit: files.SearchMax}
	search := func() (lines []int, more bool) {
		found, err := fx.Search(t.Context(), fx.org, files.Of(agent), q)
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range found.Hits {
			lines = append(lines, int(h.ChunkKey))
		}
		return lines, found.More
	}
	want, _ := search()
	var got []int
	q.Limit = 4
	for more := true; more; q.Offset += q.Limit {
		var page []int
		page, more = search()
		got = append(got, page...)
	}
	if len(want) != 11 || !slices.Equal(want, got) {
		t.Errorf("at once %d, by pages %d", want, got)
	}
}

func TestALargeScopeIsRankedAsASmallOne(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	folder := fx.stock("f", 1500, nil, func(i int) string { return fmt.Sprintf("entry %d about topic %d", i, i%50) })
	agent := fx.agentWith(folder)
	lines := func() (got []int) {
		t.Helper()
		r, err := fx.Search(t.Context(), fx.org, files.Of(agent), files.Query{Text: "entry 77", Limit: 10})
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range r.Hits {
			got = append(got, h.FirstLine)
		}
		return got
	}
	exact := lines()
	if exact[0] != 78 {
		t.Errorf("the best is line %d, want 78", exact[0])
	}
	fx.SetIndexRows(100)
	if diff := cmp.Diff(exact, lines()); diff != "" {
		t.Errorf("through the index (-exact +indexed):\n%s", diff)
	}
}

func TestSearchSeesOnlyWhatIsAttached(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	mine, other := fx.folder("mine"), fx.folder("other")
	fx.upload(mine, "a.md", "# Alpha\n\nthe walnut tree\n")
	fx.upload(mine, "b.txt", "the walnut table\n")
	fx.upload(other, "c.md", "the walnut chest\n")
	agent := fx.agentWith(mine)
	names := func(q files.Query) (names []string) {
		t.Helper()
		got, err := fx.Search(t.Context(), fx.org, files.Of(agent), q)
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range got.Hits {
			names = append(names, h.FileName)
		}
		return names
	}
	if diff := cmp.Diff([]string{"mine/a.md", "mine/b.txt"},
		names(files.Query{Text: "walnut tree", Limit: 10})); diff != "" {
		t.Errorf("found (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"mine/b.txt"}, names(files.Query{Text: "walnut tree", Limit: 10,
		Include: "*.txt"})); diff != "" {
		t.Errorf("only *.txt (-want +got):\n%s", diff)
	}
	stranger := dbtest.NewOrg(t, fx.pool)
	if got, err := fx.Search(t.Context(), stranger, files.Of(agent), files.Query{Text: "walnut", Limit: 10}); err != nil ||
		len(got.Hits) != 0 {
		t.Errorf("another organization finds %v (%v)", got.Hits, err)
	}
	if _, err := fx.Search(t.Context(), fx.org, files.Of(agent),
		files.Query{Text: " \n"}); !errors.Is(err, db.ErrInvalid) {
		t.Errorf("a blank query: got %v, want ErrInvalid", err)
	}
	if got, err := fx.Search(t.Context(), fx.org, files.Of(agent),
		files.Query{Text: "the of and", Limit: 5}); err != nil ||
		len(got.Hits) != 0 {
		t.Errorf("stop words alone: got %v (%v)", got.Hits, err)
	}
}

// The idf of a scope depends on its chunks, whatever their keys: after a late file of one chunk, and with many small
// folders next to a large one.
func TestIDFFollowsTheChunks(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	text := func(i int) string {
		if i == 700 {
			return "the zebra enclosure is being built"
		}
		return fmt.Sprintf("report number %d about the weather", i)
	}
	large := fx.stock("large", 1500, nil, text)
	fx.stock("others", 2000, nil, func(i int) string { return fmt.Sprintf("entry %d", i) })
	fx.upload(large, "late.txt", "zebra zebra crossing\n")
	agent := fx.agentWith(large)
	for i := range 30 {
		small := fx.stock(fmt.Sprint("small-", i), 3, nil, func(i int) string { return "zebra in a small folder" })
		if err := fx.attach(agent, small.ID, files.Limits{}); err != nil {
			t.Fatal(err)
		}
	}
	got, err := fx.Search(t.Context(), fx.org, files.Of(agent),
		files.Query{Text: "report about the zebra enclosure", Limit: 3})
	if err != nil || len(got.Hits) == 0 || got.Hits[0].FirstLine != 701 {
		t.Errorf("the best is %+v (%v), want line 701 of large/stock.txt", got.Hits, err)
	}
}

// Compound words of files are found by their parts.
func TestFilesAreFoundByPartsOfWords(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	folder := fx.stock("steuern", 3, nil, func(i int) string {
		return []string{"Die Umsatzsteuervoranmeldung geht am Montag an das Finanzamt.",
			"Die Belege für den März fehlen noch.",
			"Der Versicherungsschein liegt im Schrank bei der Tür."}[i]
	})
	agent := fx.agentWith(folder)
	for question, line := range map[string]int{"Umsatzsteuer": 1, "Versicherung": 3} {
		got, err := fx.Search(t.Context(), fx.org, files.Of(agent), files.Query{Text: question, Limit: 3})
		if err != nil || len(got.Hits) != 1 || got.Hits[0].FirstLine != line {
			t.Errorf("%q: got %+v (%v), want line %d", question, got.Hits, err, line)
		}
	}
}
