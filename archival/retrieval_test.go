package archival_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/loci-memory/loci/archival"
	"github.com/loci-memory/loci/db/dbtest/golden"
	"github.com/loci-memory/loci/db/dbtest/scale"
	"github.com/loci-memory/loci/embed/embedtest"
)

// categories are kinds of questions. The answer uses the question's words, or other words; or it is the last of several
// versions, or it has a tag, or it is of a month.
var categories = []string{"direct", "paraphrase", "update", "tagged", "dated"}

var (
	people = []string{
		"Amina",
		"Bertil",
		"Chloe",
		"Deniz",
		"Esther",
		"Fergus",
		"Ginevra",
		"Hamid",
		"Ines",
		"Jakub",
		"Kirsten",
		"Lamine",
		"Mireille",
		"Noor",
		"Oskar",
		"Paloma",
		"Rainer",
		"Saskia",
		"Tomas",
		"Ulla",
	}
	towns = []string{
		"Aarhus",
		"Bologna",
		"Coimbra",
		"Delft",
		"Evora",
		"Freiburg",
		"Galway",
		"Heraklion",
		"Innsbruck",
		"Jena",
	}
	goods = []string{
		"kettle",
		"drill",
		"ladder",
		"camera",
		"printer",
		"tent",
		"violin",
		"microscope",
		"projector",
		"scale",
	}
	budgets = []string{"garden", "workshop", "library", "kitchen", "festival", "archive", "harbour", "clinic"}
	months  = []time.Month{time.January, time.February, time.March, time.April, time.May, time.June}
)

// others are facts, questions about them in other words, and the pairs of words that mean the same to the endpoint's
// model.
var others = []struct{ fact, question, same string }{
	{"%s cannot stand coriander in any dish.", "Which herb is hated by %s?", "herb=coriander hated=stand"},
	{"%s commutes by ferry every weekday.", "What boat carries %s to the office?", "boat=ferry office=commutes"},
	{
		"%s is left-handed and needs special scissors.",
		"Which cutting tool suits %s?",
		"cutting=scissors tool=scissors suits=needs",
	},
	{"%s keeps bees behind the barn.", "What insects does %s raise?", "insects=bees raise=keeps"},
	{
		"%s was promoted to head of finance.",
		"What career step did %s take in money matters?",
		"career=promoted money=finance",
	},
	{"%s sleeps badly when the moon is full.", "What disturbs the nights of %s?", "disturbs=badly nights=sleeps"},
	{"%s paints seascapes in watercolour.", "What kind of art comes from %s?", "art=paints kind=watercolour"},
	{"%s sold the flat and bought a houseboat.", "What new home has %s?", "home=houseboat new=bought"},
	{"%s is allergic to penicillin.", "Which medicine must %s avoid?", "medicine=penicillin avoid=allergic"},
	{
		"%s speaks Basque with the grandparents.",
		"What language has %s from the family?",
		"language=basque family=grandparents",
	},
}

// idle are notes that share words with the facts and answer no question.
var idle = []string{
	"%s asked about the %s again, nothing was " +
		"decided.", "A call with %s from %s, mostly small talk.", "%s will write about the %s next week.",
	"Reminder: send %s the photographs of %s.", "%s liked the idea of a new %s, and then did not.",
	"The train of %s to %s was late.",
	"%s mentioned a cousin who repairs every %s.", "Lunch with %s near the station of %s.",
}

// asked is a question; evidence lists the indexes of the drafts that answer it.
type asked struct {
	category string
	archival.Query
	evidence []int
}

// library is the content of an archive, and questions about it.
type library struct {
	*rand.Rand
	drafts    []archival.Draft
	questions []asked
	begins    time.Time
}

func (l *library) put(at time.Time, tags []string, text string) int {
	l.drafts = append(l.drafts, archival.Draft{Text: text, Tags: tags, HappenedAt: &at})
	return len(l.drafts) - 1
}

func (l *library) ask(category string, q archival.Query, evidence ...int) {
	l.questions = append(l.questions, asked{category: category, Query: q, evidence: evidence})
}

func (l *library) day() time.Time { return l.begins.AddDate(0, 0, l.IntN(180)) }

func pick[T any](l *library, from []T) T { return from[l.IntN(len(from))] }

// newLibrary writes an archive: facts of all categories about each person, and three idle notes per person.
func newLibrary(seed uint64) *library {
	l := &library{Rand: rand.New(rand.NewPCG(seed, 11)), begins: time.Date(2025, 1, 1, 9, 0, 0, 0, time.UTC)}
	for i, person := range people {
		thing, town := pick(l, goods), pick(l, towns)
		l.ask("direct", archival.Query{Text: fmt.Sprintf("From whom in %s did %s borrow a %s?", town, person, thing)},
			l.put(l.day(), []string{"loans"}, fmt.Sprintf("%s borrowed a %s from a colleague in %s.", person, thing, town)))
		other := others[(i+l.IntN(2))%len(others)]
		l.ask(
			"paraphrase",
			archival.Query{Text: fmt.Sprintf(other.question, person)},
			l.put(l.day(), nil, fmt.Sprintf(other.fact, person)),
		)
		for n, day := range []time.Time{l.begins.AddDate(0, 1, i), l.begins.AddDate(0, 3, i), l.begins.AddDate(0, 5, i)} {
			place := l.put(
				day,
				[]string{"desks"},
				fmt.Sprintf("The desk of %s is number %d, by the window.", person, 10+l.IntN(90)),
			)
			if n == 2 {
				l.ask("update", archival.Query{Text: fmt.Sprintf("What number has the desk of %s now?", person)}, place)
			}
		}
		for range 9 {
			l.put(l.day(), nil, fmt.Sprintf(pick(l, idle), person, pick(l, append(goods, towns...))))
		}
	}
	for _, budget := range budgets {
		for _, month := range months {
			day := time.Date(2025, month, 15, 12, 0, 0, 0, time.UTC)
			place := l.put(
				day,
				[]string{"money", budget},
				fmt.Sprintf("The monthly budget was exceeded by %d, for repairs.", 100+7*len(l.drafts)),
			)
			start, end := day.AddDate(0, 0, -5), day.AddDate(0, 0, 5)
			l.ask(
				"tagged",
				archival.Query{
					Text:  "By how much was the budget exceeded?",
					Tags:  []string{budget, "money"},
					Match: archival.All,
					Start: &start,
					End:   &end,
				},
				place,
			)
		}
	}
	for _, month := range months {
		day := time.Date(2025, month, 3, 8, 0, 0, 0, time.UTC)
		place := l.put(day, nil, fmt.Sprintf("The visitors of the open day numbered %d.", 40+len(l.drafts)))
		start, end := time.Date(2025, month, 1, 0, 0, 0, 0, time.UTC), time.Date(2025, month+1, 1, 0, 0, 0, 0, time.UTC)
		l.ask("dated", archival.Query{Text: "How many visitors came to the open day?", Start: &start, End: &end}, place)
	}
	return l
}

// model returns an endpoint that knows which words mean the same.
func model(t *testing.T) *embedtest.Endpoint {
	t.Helper()
	e := embedtest.New(t, 256)
	e.Same = map[string]string{}
	for _, other := range others {
		for pair := range strings.FieldsSeq(other.same) {
			word, meaning, _ := strings.Cut(pair, "=")
			e.Same[word] = meaning
		}
	}
	return e
}

// The quality of retrieval is a golden file, so that every change of the ranking shows. "default" is the search with an
// endpoint.
func TestRetrievalOfPassages(t *testing.T) {
	t.Parallel()
	scale.Long(t)
	f := newDenseFixture(t, model(t))
	words := archival.New(f.pool, archival.Options{})
	all := map[string]*embedtest.Quality{}
	for seed := range uint64(4) {
		l, c := newLibrary(seed), f.archive(fmt.Sprint("library ", seed))
		stored, err := f.store.Insert(t.Context(), f.org, c.ID, l.drafts)
		if err != nil {
			t.Fatal(err)
		}
		f.embedded(c.ID)
		for _, q := range l.questions {
			var evidence []string
			for _, place := range q.evidence {
				evidence = append(evidence, stored[place].ID)
			}
			q.ArchiveID, q.Limit = c.ID, 10
			for ranking, store := range map[string]*archival.Store{"words": words, "default": f.store} {
				got, err := store.Search(t.Context(), f.org, q.Query)
				if err != nil || got.ByMeaning != (ranking == "default") {
					t.Fatalf("%s: %v, %+v", q.Text, err, got)
				}
				var found []string
				for _, h := range got.Hits {
					found = append(found, h.ID)
				}
				for _, key := range []string{q.category + ranking, "all" + ranking} {
					if all[key] == nil {
						all[key] = &embedtest.Quality{}
					}
					all[key].Add(found, evidence)
				}
			}
		}
	}
	var table strings.Builder
	table.WriteString(embedtest.QualityHead)
	for _, category := range append(categories, "all") {
		for _, ranking := range []string{"words", "default"} {
			table.WriteString(all[category+ranking].Row(category, ranking))
		}
	}
	checkGolden(t, "passages", table.String())
}

func checkGolden(t *testing.T, name, got string) {
	t.Helper()
	golden.Check(t, "testdata/"+name+".golden", got)
}
