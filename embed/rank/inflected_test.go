package rank_test

import (
	_ "embed" // for the questions
	"strings"
	"testing"

	"github.com/loci-memory/loci/embed/rank"
)

//go:embed testdata/inflected.txt
var inflected string

// leastFound is how many of ten questions must find their text first.
const leastFound = 9

// inflectedIn returns language → texts and questions with other forms of their words; each question is of one text.
func inflectedIn() (texts, questions map[string][]string) {
	texts, questions = map[string][]string{}, map[string][]string{}
	for line := range strings.Lines(inflected) {
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
	texts, questions := inflectedIn()
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
