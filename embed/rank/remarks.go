package rank

import (
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed/lexicon"
)

// MaxQueryChars is the most characters of a search's text: of English, about the 8,192 tokens that models of embeddings
// read at most. The time of a search grows with its words.
const MaxQueryChars = 32_000

// CheckQuery returns ErrInvalid for a text that is too long to be searched for.
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

// Remarks are what the hits of a search do not show by themselves.
type Remarks struct {
	Note     string // a sentence on what the ranking lacks; empty if nothing
	Wordless bool   // nothing is found, because the query has only stop words and is searched by words alone
	Cut      bool   // the hits end here, or before, because only the best rows are ranked
}

// WordlessRemark says why a query finds nothing.
const WordlessRemark = "The query has no words, or only words that nearly every text has, and finds nothing. Ask " +
	"with words that tell: a name, a topic, a number."

// CutRemark says why results end that may not be all.
var CutRemark = fmt.Sprintf("Only the best are ranked, %d by words and %d by meaning, and the results end with them. "+
	"There may be others that fit less: to find them, narrow the search, or ask in other words.", ArmRows, MeaningRows)

// WhyNothing returns WordlessRemark if it is why nothing is found; else it is empty.
func (r Remarks) WhyNothing() string {
	if !r.Wordless {
		return ""
	}
	return WordlessRemark
}

// WhyEnded returns CutRemark if it is why the hits end; else it is empty.
func (r Remarks) WhyEnded() string {
	if !r.Cut {
		return ""
	}
	return CutRemark
}

// Sentences returns what there is to say.
func (r Remarks) Sentences() []string {
	return slices.DeleteFunc([]string{r.Note, r.WhyNothing(), r.WhyEnded()}, func(s string) bool { return s == "" })
}

// Remarks returns what is to say of a page of hits. more reports whether the ranking has rows behind the page.
func (r Ranking) Remarks(hits int, more bool) Remarks {
	return Remarks{Note: r.Note, Cut: r.cut && !more,
		Wordless: r.Query.Common && !r.ByMeaning && r.BestWords == 0 && hits == 0}
}
