package prose_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/loci-memory/loci/compaction/prose"
)

func TestAbbreviationsEndNoSentence(t *testing.T) {
	t.Parallel()
	const before, after = "The weather was nice in the mountains.", "Everybody went home by train afterwards."
	for _, whole := range []string{
		"Never sign letters as 'T. Okonkwo'.", `Never sign letters as "T. Okonkwo".`, "Never sign letters as “T. Okonkwo”.",
		"Never write to my boss (T. Okonkwo) directly.", "Never write to my boss [J. R. Tolkien] directly.",
		"My flight is at 5 p.m. on Tuesday.", "My flight is at 5p.m. on Tuesday.", "Never ship to the U.S. office.",
		"Never ship to the (U.S. based) office.", "My doctor has a Ph.D. in chemistry.", "Never use bus No. 7 on Sundays.",
		"Never use gate no. B12 on Sundays.", "Die Rechnung hat die Nr. 4711 bekommen.", "I never fly to St. Petersburg.",
		"We always hike on Mt. Rainier in summer.", "My birthday party is on Dec. 5 this year.",
		"Never upgrade to version 1.2.3 of the library.", "Never edit the file main.go without asking.",
		"I like pasta ... but never with cheese.", "I like pasta... but never with cheese.",
		"Please ask for Dr. Smith or Mrs. Jones there.", "Bring e.g. approx. six chairs to us.",
		"Wir treffen uns z.B. am 14. Juni in Berlin.", "My home is in the Main St. opposite of the station.",
	} {
		want := []string{before, whole, after}
		if got := prose.Sentences(strings.Join(want, " ")); !slices.Equal(got, want) {
			t.Errorf("%q: got %q", whole, got)
		}
	}
}

func TestSentencesEnd(t *testing.T) {
	t.Parallel()
	for _, c := range [][]string{
		{"We all upgraded to version 1.2.3.", "Everybody liked the result."},
		{"Please have a look at main.go.", "Everybody liked the result."},
		{"My final answer to that is no.", "Everybody liked the result."},
		{"I was thinking about pasta...", "Everybody liked the result."},
		{"i went to the station.", "everybody liked the result."},
		{"We met in the year 2024.", "Everybody liked the result!", "Shall we all travel there again?", "Look for trains."},
	} {
		if got := prose.Sentences(strings.Join(c, " ")); !slices.Equal(got, c) {
			t.Errorf("got %q, want %q", got, c)
		}
	}
}

// A long sentence that begins with a conjunction is a line of its own. If it were joined to the one before, both might
// not fit.
func TestLongSentencesStandAlone(t *testing.T) {
	t.Parallel()
	long := []string{"Never write to the table ledger.",
		"And keep the API of the gateway client as it is for the mobile team."}
	if got := prose.Sentences(strings.Join(long, " ")); !slices.Equal(got, long) {
		t.Errorf("got %q, want %q", got, long)
	}
	short := "Never write to the table ledger. And not to its copy."
	if got := prose.Sentences(short); len(got) != 1 {
		t.Errorf("%q is split: %q", short, got)
	}
}

// A question never lowers the score of the statement before it.
func TestQuestionsStandAlone(t *testing.T) {
	t.Parallel()
	for _, c := range [][]string{
		{"I'm vegan.", "What shall I cook?"}, {"I am diabetic!", "And what may I eat then?"},
		{"My gate is B12.", "Is that far from here, or not?"}, {"Call me Zed.", "So what is next on our list?"},
		{"我吃素。", "晚饭吃什么？"},
	} {
		if got := prose.Sentences(strings.Join(c, " ")); !slices.Equal(got, c) {
			t.Errorf("got %q, want %q", got, c)
		}
	}
	for _, whole := range []string{"Which one? Not yet decided by anybody.", "Ok. That was not me."} {
		if got := prose.Sentences(whole); len(got) != 1 {
			t.Errorf("%q is split: %q", whole, got)
		}
	}
}
