package rank_test

import (
	_ "embed" // for the questions
	"strings"
	"testing"

	"github.com/loci-memory/loci/embed/rank"
)

//go:embed testdata/inflected.txt
var inflected string

//go:embed testdata/compounds.txt
var compounds string

// leastFound is how many of ten questions must find their text first.
const leastFound = 9

// questionsIn returns language → texts of a file and their questions; each question is of one text.
func questionsIn(file string) (texts, questions map[string][]string) {
	texts, questions = map[string][]string{}, map[string][]string{}
	for line := range strings.Lines(file) {
		fields := strings.Split(strings.TrimSpace(line), " | ")
		if len(fields) != 3 || strings.HasPrefix(line, "#") {
			continue
		}
		l := fields[0]
		texts[l], questions[l] = append(texts[l], fields[1]), append(questions[l], fields[2])
	}
	return texts, questions
}

// Questions in twelve languages find texts that have their words in other forms, among texts of their language and
// among texts of all languages.
func TestOtherFormsOfWordsAreFound(t *testing.T) {
	t.Parallel()
	texts, questions := questionsIn(inflected)
	var all []string
	for _, some := range texts {
		all = append(all, some...)
	}
	for language, asked := range questions {
		for scope, in := range map[string][]string{"its own": texts[language], "all": all} {
			found := 0
			for i, question := range asked {
				r, _ := rank.Texts(t.Context(), nil, question, in, rank.Arms{Words: true})
				if len(r.Rows) > 0 && in[r.Rows[0].ID] == texts[language][i] {
					found++
				} else {
					t.Logf("%s among %s texts: %q does not find %q", language, scope, question, texts[language][i])
				}
			}
			if found < leastFound {
				t.Errorf("%s among %s texts: %d questions find their text, want %d", language, scope, found, leastFound)
			}
		}
	}
}

// Compound words are found by their parts, and parts by the compound words that have them.
func TestPartsOfCompoundWordsAreFound(t *testing.T) {
	t.Parallel()
	texts, questions := questionsIn(compounds)
	asked, found := 0, 0
	for language, all := range questions {
		for i, question := range all {
			asked++
			r, _ := rank.Texts(t.Context(), nil, question, texts[language], rank.Arms{Words: true})
			if len(r.Rows) > 0 && texts[language][r.Rows[0].ID] == texts[language][i] {
				found++
			} else {
				t.Logf("%s: %q does not find %q", language, question, texts[language][i])
			}
		}
	}
	if found < asked {
		t.Errorf("%d of %d questions find their text", found, asked)
	}
}

// Words that only have the same letters are no parts.
func TestLettersWithinAWordAreNoPart(t *testing.T) {
	t.Parallel()
	texts := []string{"Der Frost kam in der Nacht, und das Schwein stand im Stall.",
		"Ein Brand ist im Traum ausgebrochen.",
		"Die Anlagen wurden verwendet, der Krawall nicht.", "Verkäufer bringen Garten und Kirschen."}
	for _, question := range []string{"Rost", "Wein", "Rand", "Raum", "Lage", "Ende", "Wall", "Käufer", "Arten"} {
		if r, _ := rank.Texts(t.Context(), nil, question, texts, rank.Arms{Words: true}); len(r.Rows) > 0 {
			t.Errorf("%q finds %q", question, texts[r.Rows[0].ID])
		}
	}
}
