package archival_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/loci-memory/loci/archival"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/db/dbtest/scale"
	"github.com/loci-memory/loci/embed/embedtest"
	"github.com/loci-memory/loci/embed/wordindex"
)

// Query plans depend on Postgres' statistics of all organizations' passages, and word indexes cover all organizations.
// These tests therefore share one database of their own, run one after the other, and make its statistics themselves.
func TestPlansAndIndexes(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	database := owned{pool, dbtest.Owner(t, pool)}
	for _, table := range []string{"passages", "passage_vectors"} {
		if _, err := database.owner.Exec(t.Context(), `ALTER TABLE `+table+` SET (autovacuum_enabled = false)`); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		name string
		run  func(*testing.T, owned)
	}{
		{"fresh passages are read by their keys", freshPassagesAreReadByTheirKeys},
		{"a batch is inserted by keys", aBatchIsInsertedByKeys},
		{"fresh passages of a tag are found by its index", freshPassagesOfATagAreFoundByItsIndex},
		{"fresh passages are found by their metadata", freshPassagesAreFoundByTheirMetadata},
		{"passages of many archives are found by their terms", passagesOfManyArchivesAreFoundByTheirTerms},
		{"a large scope reads the index", aLargeScopeReadsTheIndex},
		{"an archive is ranked through the index of words", anArchiveIsRankedThroughTheIndexOfWords},
		{"passages of an older version are weighed anew", passagesOfAnOlderVersionAreWeighedAnew},
		{"meaning ranks more passages of a tag than words", meaningRanksMorePassagesOfATagThanWords},
		{"a large scope is read through its indexes", aLargeScopeIsReadThroughItsIndexes},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, database) })
	}
}

// owned is a database: a pool of the serving role, and a pool of the role that owns the tables.
type owned struct{ pool, owner *pgxpool.Pool }

// dense returns a fixture in the database with an endpoint of the given dimension.
func (in owned) dense(t *testing.T, dimension int) *denseFixture {
	t.Helper()
	f := &denseFixture{fixture: newFixtureIn(t, in.pool)}
	f.use(embedtest.New(t, dimension))
	return f
}

// Right after a load, before Postgres has statistics of it, a search reads the passages that it found by their keys.
func freshPassagesAreReadByTheirKeys(t *testing.T, database owned) {
	f := newFixtureIn(t, database.pool)
	var texts []string
	for i := range 300 {
		texts = append(texts, fmt.Sprintf("common note number%d about subject%d", i, i%7))
	}
	f.insert(texts...)
	plans := dbtest.NewPlans(t, f.pool)
	store := archival.New(plans, archival.Options{})
	got, err := store.Search(t.Context(), f.org, archival.Query{Text: "subject3", AgentID: f.agent, Limit: 20})
	if err != nil || len(got.Hits) != 20 {
		t.Fatalf("%d hits, %v", len(got.Hits), err)
	}
	plans.ReadByKeys("AS hit (key", "passages_pkey")
}

// Within a batch, before Postgres has statistics of it, each text is looked up by what it says. Through any other
// index, all passages before it would be read.
func aBatchIsInsertedByKeys(t *testing.T, database owned) {
	f := newFixtureIn(t, database.pool)
	archive := f.archive("notes")
	key, err := db.One[int64](t.Context(), f.pool, `SELECT key FROM archives WHERE org = $1 AND id = $2`, f.org,
		archive.ID)
	if err != nil {
		t.Fatal(err)
	}
	args := archival.InsertArgs(t.Context(), f.org, key, "the second")
	stored := pgx.StrictNamedArgs{"id": args["id"], "org": f.org, "archive": key, "sum": args["sum"], "until": nil,
		"text": "the second"}
	plans := dbtest.NewPlans(t, f.pool)
	var batch pgx.Batch
	batch.Queue(wordindex.ByIndexes)
	batch.Queue(archival.InsertPassage, args)
	batch.Queue(archival.StoredPassage, stored)
	if err := plans.SendBatch(t.Context(), &batch).Close(); err != nil {
		t.Fatal(err)
	}
	plan := plans.Take("passages p")
	n := strings.Count(plan, "Index Scan using passages_same on passages p")
	if n != 2 || strings.Contains(plan, "Seq Scan") {
		t.Errorf("the texts are not looked up by what they say:\n%s", plan)
	}
	if n = strings.Count(plan, "on passages "); n != 4 { // the insertion itself, and the successor of a passage
		t.Errorf("%d scans of passages:\n%s", n, plan)
	}
}

// Right after a load, before Postgres has statistics of it, passages are found by the index of their tags or times.
func freshPassagesOfATagAreFoundByItsIndex(t *testing.T, database owned) {
	f := newFixtureIn(t, database.pool)
	archive := f.archive("notes")
	if err := f.store.Attach(t.Context(), f.org, f.agent, archive.ID); err != nil {
		t.Fatal(err)
	}
	f.taggedNotes(archive.ID, f.archive("of others").ID)
	plans := dbtest.NewPlans(t, f.pool)
	store := archival.New(plans, archival.Options{})
	store.SetWide(10)
	search := func(q archival.Query) {
		t.Helper()
		q.Text, q.AgentID, q.Limit = "subject3", f.agent, 20
		if got, err := store.Search(t.Context(), f.org, q); err != nil || len(got.Hits) < 2 {
			t.Fatalf("%d hits, %v", len(got.Hits), err)
		}
	}
	search(archival.Query{Users: db.AllUsers(), Tags: []string{"tag 7"}})
	plans.ReadByKeys("@owned", "passages_tags")
	search(archival.Query{Users: db.AllUsers(), Start: noteDay(3), End: noteDay(4)})
	plans.ReadByKeys("LIMIT @most", "passages_archive", "happened_at >=")
	search(archival.Query{Users: db.AllUsers(), Tags: []string{"tag 7"}})
	plans.ReadByKeys("@few", "passages_pkey")
}

// A filter by metadata reads its index, however old Postgres' statistics are, and with the key of the archive.
func freshPassagesAreFoundByTheirMetadata(t *testing.T, database owned) {
	f := newFixtureIn(t, database.pool)
	archive := f.archive("notes")
	if err := f.store.Attach(t.Context(), f.org, f.agent, archive.ID); err != nil {
		t.Fatal(err)
	}
	f.describedNotes(archive.ID, f.archive("of others").ID)
	plans := dbtest.NewPlans(t, f.pool)
	store := archival.New(plans, archival.Options{})
	store.SetWide(10)
	got, err := store.Search(t.Context(), f.org, archival.Query{Text: "subject3", AgentID: f.agent, Limit: 20,
		Filter: json.RawMessage(`{"metadata.who.name": ["person 1", "person 2"], "metadata.food": "dish 7"}`)})
	if err != nil || len(got.Hits) != 4 {
		t.Fatalf("%d hits, %v", len(got.Hits), err)
	}
	plans.ReadByKeys("passage_values", "passage_values_text")
	for filter, index := range map[string]string{
		`{"metadata.price": {"gte": 118}}`:          "passage_values_number",
		`{"metadata.due": {"gte": "2026-02-28"}}`:   "passage_values_moment",
		`{"metadata.food": {"contains": "dish 7"}}`: "passage_values_grams",
		`{"metadata.food": {"prefix": "dish 7"}}`:   "passage_values_text",
	} {
		_, err := store.Search(t.Context(), f.org, archival.Query{Text: "subject3", AgentID: f.agent, Limit: 20,
			Filter: json.RawMessage(filter)})
		if err != nil {
			t.Fatal(err)
		}
		plans.ReadByKeys("passage_values", index)
	}
}

// Passages of many archives are found by the index of terms, however old Postgres' statistics are. Through another
// index, Postgres would read all passages and compare each with every term of every archive.
func passagesOfManyArchivesAreFoundByTheirTerms(t *testing.T, database owned) {
	f := newFixtureIn(t, database.pool)
	for i := range 20 {
		archive := f.archive(fmt.Sprint("archive ", i))
		if err := f.store.Attach(t.Context(), f.org, f.agent, archive.ID); err != nil {
			t.Fatal(err)
		}
		var drafts []archival.Draft
		for n := range 100 {
			day := time.Date(2026, 1, 1+n%28, 0, 0, 0, 0, time.UTC)
			drafts = append(drafts, archival.Draft{Text: fmt.Sprintf("note number%d about subject%d", n, n%50),
				HappenedAt: &day})
		}
		if _, err := f.store.Insert(t.Context(), f.org, archive.ID, drafts); err != nil {
			t.Fatal(err)
		}
	}
	plans := dbtest.NewPlans(t, f.pool)
	store := archival.New(plans, archival.Options{})
	store.SetIndexRows(500)
	start := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	for _, q := range []archival.Query{{Text: "subject3"}, {Text: "subject3", Start: &start}} {
		q.AgentID, q.Limit = f.agent, 20
		if got, err := store.Search(t.Context(), f.org, q); err != nil || len(got.Hits) != 20 {
			t.Fatalf("%d hits, %v", len(got.Hits), err)
		}
		plan := plans.Take("terms && @terms")
		if !strings.Contains(plan, "passages_terms") || strings.Count(plan, "Index Scan") != 1 ||
			strings.Contains(plan, "Seq Scan") {
			t.Errorf("passages are not found by their terms alone:\n%s", plan)
		}
	}
}

// A search of a large scope reads the index of terms, and finds the same as a search of a small scope.
func aLargeScopeReadsTheIndex(t *testing.T, database owned) {
	f := newFixtureIn(t, database.pool)
	var texts []string
	for i := range 800 {
		texts = append(texts, fmt.Sprintf("common note number%d about subject%d", i, i%190))
	}
	f.insert(texts...)
	q := archival.Query{Text: "note about subject77", AgentID: f.agent, Limit: 4}
	small := f.found(q)
	plans := dbtest.NewPlans(t, f.pool)
	f.store = archival.New(plans, archival.Options{})
	f.store.SetIndexRows(500)
	large := f.found(q)
	if plan := plans.Take("@terms"); !strings.Contains(plan, "passages_terms") {
		t.Errorf("a large scope is not read through the index:\n%s", plan)
	}
	if diff := cmp.Diff(small, large); diff != "" || len(small) != 4 {
		t.Errorf("a small and a large scope (-small +large):\n%s", diff)
	}
}

// For a tag with many passages, a search by meaning still compares all of them when a search by words no longer does.
func meaningRanksMorePassagesOfATagThanWords(t *testing.T, database owned) {
	scale.Long(t)
	f := database.dense(t, 64)
	archive := f.archive("notes").ID
	for part := range 6 {
		var drafts []archival.Draft
		for n := range 1000 {
			d := archival.Draft{Text: fmt.Sprintf("note number%d of subject%d", 1000*part+n, n%70), Tags: []string{"many"}}
			if n%4 == 0 {
				d.Tags = []string{"rest"}
			}
			drafts = append(drafts, d)
		}
		if _, err := f.store.Insert(t.Context(), f.org, archive, drafts); err != nil {
			t.Fatal(err)
		}
	}
	f.embedded(archive)
	exact := archival.New(f.pool, archival.Options{Endpoint: f.endpoint})
	exact.SetWide(1 << 40)
	plans := dbtest.NewPlans(t, f.pool)
	f.store = archival.New(plans, archival.Options{Endpoint: f.endpoint})
	f.store.SetWide(10)
	for _, tag := range []string{"many", "rest"} {
		q := archival.Query{Text: "note of subject3", ArchiveID: archive, Limit: 50, Tags: []string{tag}}
		want, err := exact.Search(t.Context(), f.org, q)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, f.search(q)); diff != "" {
			t.Errorf("%s (-all +narrowed):\n%s", tag, diff)
		}
		if plan := plans.Take("@few"); !strings.Contains(plan, "passage_vectors") {
			t.Errorf("%s: the vectors are not read by their keys:\n%s", tag, plan)
		}
	}
}

// A space above its threshold gets an index. A large scope is read through the index, by words and by meaning; a small
// scope is read completely. Both find all hits.
func aLargeScopeIsReadThroughItsIndexes(t *testing.T, database owned) {
	scale.Long(t)
	f := database.dense(t, 32)
	small := f.archive("small")
	few := make([]archival.Draft, 10)
	for i := range few {
		few[i].Text = fmt.Sprintf("entry %d of a small series", i)
	}
	if _, err := f.store.Insert(t.Context(), f.org, small.ID, few); err != nil {
		t.Fatal(err)
	}
	drafts := make([]archival.Draft, 3000)
	for i := range drafts {
		drafts[i] = archival.Draft{
			Text: fmt.Sprintf("entry number%d of series%d", i, i%600),
			Tags: []string{fmt.Sprint("tag", i%1500), []string{"even", "odd"}[i%2]},
		}
	}
	large, err := f.store.InsertFor(t.Context(), f.org, archival.Of(f.agent), drafts)
	if err != nil {
		t.Fatal(err)
	}
	if built, err := f.store.Queue().Index(t.Context(), database.owner, nil, nil); built || err != nil {
		t.Fatalf("an index was built of nothing: %v (%v)", built, err)
	}
	f.store.SetIndexRows(1000)
	f.embedded(small.ID, large[0].ArchiveID)
	if built, err := f.store.Queue().Index(t.Context(), database.owner, nil, nil); !built || err != nil {
		t.Fatalf("an index was built: %v (%v)", built, err)
	}
	const question = "entry number77 of series77"
	plans, day := dbtest.NewPlans(t, f.pool), time.Now().Add(-24*time.Hour)
	f.store = archival.New(plans, archival.Options{Endpoint: f.endpoint})
	index := fmt.Sprintf("Index Scan using passage_vectors_space_%d", f.space.ID)
	for _, c := range []struct {
		name        string
		query       archival.Query
		indexRows   int
		table, want string
	}{
		{"an agent", archival.Query{AgentID: f.agent}, 1000, "passage_vectors", index},
		{"an agent's of a tag and some days", archival.Query{AgentID: f.agent, Tags: []string{"odd", "none"}, Start: &day},
			1000, "passage_vectors", index},
		{"an agent's of all of its tags", archival.Query{AgentID: f.agent, Tags: []string{"odd"}, Match: archival.All}, 1000,
			"passage_vectors", index},
		{"the organization", archival.Query{}, 1000, "passage_vectors", index},
		{"an agent, exactly", archival.Query{AgentID: f.agent}, 50_000, "passage_vectors", "passage_vectors"},
		{"a small archive, exactly", archival.Query{ArchiveID: small.ID}, 1000, "passage_vectors", "passage_vectors_scope"},
		{"an agent, by words", archival.Query{AgentID: f.agent}, 1000, "@terms", "passages_terms"},
		{"an agent's of some tags, by words", archival.Query{AgentID: f.agent, Tags: []string{"tag77"}}, 1000, "@terms",
			"passages_terms"},
		{"a small archive, by words", archival.Query{ArchiveID: small.ID}, 1000, "r.lex", "passages_"},
	} {
		c.query.Text, c.query.Limit = question, 1
		f.store.SetIndexRows(c.indexRows)
		f.search(c.query)
		plan := plans.Take(c.table)
		if !strings.Contains(plan, c.want) || c.want != index && strings.Contains(plan, index) ||
			c.table == "passage_vectors" &&
				strings.Contains(plan, "on passages") || c.table == "r.lex" && strings.Contains(plan, "passages_terms") {
			t.Errorf("%s: the plan is not by %q:\n%s", c.name, c.want, plan)
		}
	}
	f.store = archival.New(f.pool, archival.Options{Endpoint: f.endpoint})
	f.store.SetIndexRows(1000)
	near := f.found(archival.Query{Text: question})
	f.store.SetIndexRows(1 << 40)
	found := 0
	for _, text := range f.found(archival.Query{Text: question}) {
		if slices.Contains(near, text) {
			found++
		}
	}
	if len(near) != 10 || found < 8 || near[0] != question {
		t.Errorf("through the indexes %d were found, %d of them among the best, first %q", len(near), found, near[0])
	}
	f.store.SetIndexRows(1)
	if got := f.search(archival.Query{Text: question, ArchiveID: small.ID, Limit: 10}); len(got.Hits) != 10 ||
		slices.ContainsFunc(got.Hits, func(h archival.Hit) bool { return h.MeaningRank == 0 }) {
		t.Errorf("of an archive of 10 among 3,000 %d were found", len(got.Hits))
	}
	if got := f.found(archival.Query{Text: question, Tags: []string{"tag9"}}); len(got) != 2 {
		t.Errorf("of two with a tag among 3,000 were found %q", got)
	}
}
