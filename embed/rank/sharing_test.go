package rank_test

import (
	"strings"
	"testing"

	"github.com/loci-memory/loci/embed/embedtest"
	"github.com/loci-memory/loci/embed/lexicon"
	"github.com/loci-memory/loci/embed/rank"
)

// In finds a query in texts that have one of its words, in any form or spelling. It does not find it in a text that
// only has a word with the same TermID.
func TestAQueryIsInTextsThatShareAWord(t *testing.T) {
	t.Parallel()
	a, b := embedtest.Colliding(t)
	for _, tt := range []struct {
		query, text string
		want        bool
	}{
		{a, b, false}, {b, a, false}, {a, "of " + a + " too", true}, {a + " walnut", b + " walnuts", true},
		{a, "", false}, {"", a, false}, {"time zone", "the timezone", true}, {"Wen hat Straße", "strasse", true},
		{"will", "Ask Will.", true}, {"will", "It will rain.", false}, {"went", "They go", true},
		{"walnut", strings.Repeat("some other words ", 50) + "walnuts", true},
		{"walnut", strings.Repeat("x", 127) + " walnut " + strings.Repeat("y", 200), true},
		{"walnut", strings.Repeat("x", 500) + "walnut", false}, {"月光", strings.Repeat("海", 300) + "月光", true},
	} {
		if got := lexicon.NewIDF(nil, 1).Query(tt.query).In(tt.text); got != tt.want {
			t.Errorf("Query(%q).In(%q) = %t, want %t", tt.query, tt.text, got, tt.want)
		}
	}
	r := rank.Ranking{Query: lexicon.NewIDF(nil, 1).Query(a)}
	for _, tt := range []struct {
		text                      string
		words, meaning, wantWords int
		want                      bool
	}{
		{a, 1, 0, 1, true}, {b, 1, 0, 0, false}, {b, 1, 2, 0, true}, {b, 0, 0, 0, true},
	} {
		words := tt.words
		if got := r.Confirm(tt.text, &words, tt.meaning); got != tt.want || words != tt.wantWords {
			t.Errorf("Confirm(%q, %d, %d) = %t and %d, want %t and %d", tt.text, tt.words, tt.meaning, got, words, tt.want,
				tt.wantWords)
		}
	}
}
