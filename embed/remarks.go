package embed

import (
	"fmt"
	"unicode/utf8"

	"github.com/loci-memory/loci/db"
)

// MaxQueryChars is the most characters of a search's text. The time of a search grows with its words.
const MaxQueryChars = 8_000

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
func IsWordless(text string) bool { return len(termsOf(text)) == 0 }

// Remarks are what the hits of a search do not show by themselves.
type Remarks struct {
	Note     string // a sentence on what the ranking lacks; empty if nothing
	Wordless bool   // nothing is found, because the query has only stop words and is searched by words alone
	Cut      bool   // the hits end here, or before, because only the best rows are ranked
}

// WordlessRemark says why a query finds nothing.
const WordlessRemark = "The query has no words, or only words that nearly every text has, and finds nothing. Ask with " +
	"words that tell: a name, a topic, a number."

// CutRemark says why results end that may not be all.
var CutRemark = fmt.Sprintf("Only the best are ranked, %d by words and %d by meaning, and the results end with them. There "+
	"may be others that fit less: to find them, narrow the search, or ask in other words.", ArmRows, MeaningRows)

// Sentences returns what there is to say.
func (r Remarks) Sentences() (all []string) {
	if r.Note != "" {
		all = append(all, r.Note)
	}
	if r.Wordless {
		all = append(all, WordlessRemark)
	}
	if r.Cut {
		all = append(all, CutRemark)
	}
	return all
}

// Remarks returns what is to say of a page of hits. more reports whether the ranking has rows behind the page.
func (r Ranking) Remarks(hits int, more bool) Remarks {
	return Remarks{Note: r.Note, Cut: r.cut && !more,
		Wordless: r.Query.Common && !r.ByMeaning && r.BestWords == 0 && hits == 0}
}
