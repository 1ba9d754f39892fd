package rank

import (
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed/lexicon"
)

// MaxQueryChars is the most characters of a search's text. In English they are about 8,192 tokens, the most that
// embedding models read. The time of a search grows with its words.
const MaxQueryChars = 32_000

// CheckQuery returns ErrInvalid if a text is too long to be searched for.
func CheckQuery(text string) error {
	if len(text) <= MaxQueryChars {
		return nil
	}
	if n := utf8.RuneCountInString(text); n > MaxQueryChars {
		return db.Invalid("query has %d characters; a search takes at most %d. Ask for one thing, in a sentence or in the "+
			"words that its text would have", n, MaxQueryChars)
	}
	return nil
}

// IsWordless reports whether a text has no word to search by: only stop words, or none at all.
func IsWordless(text string) bool { return len(lexicon.TermsOf(text)) == 0 }

// Remarks say what the hits of a search do not show.
type Remarks struct {
	Note     string // a sentence that says what the ranking lacks, or ""
	Wordless bool   // nothing is found, because the query has only stop words and is searched by words alone
	Cut      bool   // there may be more hits, but only the best rows are ranked
}

// WordlessRemark says why a query finds nothing.
const WordlessRemark = "The query has no words, or only words that nearly every text has, and finds nothing. Ask " +
	"with words that tell: a name, a topic, a number."

// CutRemark says that results end although there may be more.
var CutRemark = fmt.Sprintf("Only the best are ranked, %d by words and %d by meaning, and the results end with them. "+
	"There may be others that fit less: to find them, narrow the search, or ask in other words.", ArmRows, MeaningRows)

// WhyNothing returns WordlessRemark if nothing is found for that reason, or "".
func (r Remarks) WhyNothing() string {
	if !r.Wordless {
		return ""
	}
	return WordlessRemark
}

// WhyEnded returns CutRemark if the hits end for that reason, or "".
func (r Remarks) WhyEnded() string {
	if !r.Cut {
		return ""
	}
	return CutRemark
}

// Sentences returns all remarks.
func (r Remarks) Sentences() []string {
	return slices.DeleteFunc([]string{r.Note, r.WhyNothing(), r.WhyEnded()}, func(s string) bool { return s == "" })
}

// Remarks returns the remarks on a page of hits. more reports whether the ranking has rows after the page.
func (r Ranking) Remarks(hits int, more bool) Remarks {
	return Remarks{Note: r.Note, Cut: r.cut && !more,
		Wordless: r.Query.Common && !r.ByMeaning && r.BestWords == 0 && hits == 0}
}
