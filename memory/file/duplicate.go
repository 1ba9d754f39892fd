package file

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// fact is a sentence of a line that may state something.
type fact struct {
	path string
	line int
	all  string   // its words, in lower case
	says []string // its words without small words, and without endings
}

const (
	leastFactWords = 4   // a sentence with fewer words states nothing
	sameShare      = 0.7 // share of the longer fact's words that the shorter one must have
	maxPostings    = 500 // words that occur in more facts are not used to find facts
)

// smallWords say nothing by themselves. Words that deny or limit something are not among them.
var smallWords = setOf("a an the is are was were be been has have had it its this that of to in on at by for with " +
	"and we i our my their his her as does do did will there which who")

func setOf(words string) map[string]bool {
	all := map[string]bool{}
	for w := range strings.FieldsSeq(words) {
		all[w] = true
	}
	return all
}

// stem returns a word without its inflectional ending, if at least three letters remain.
func stem(word string) string {
	for _, ending := range []string{"ing", "ed", "es", "s", "e"} {
		short, ok := strings.CutSuffix(word, ending)
		if ok && utf8.RuneCountInString(short) >= 3 && !strings.ContainsFunc(short, notLetter) {
			return short
		}
	}
	return word
}

func notLetter(r rune) bool { return !unicode.IsLetter(r) }

// factsOf returns the facts of a line.
func factsOf(path string, number int, text string) (all []fact) {
	sentences := strings.ReplaceAll(withoutPointers(lineFeeds(text)), ". ", ";")
	for part := range strings.FieldsFuncSeq(sentences, func(r rune) bool { return r == '|' || r == ';' || r == '\n' }) {
		words := strings.FieldsFunc(strings.ToLower(part), func(r rune) bool { return notLetter(r) && !unicode.IsNumber(r) })
		if len(words) < leastFactWords {
			continue
		}
		f := fact{path: path, line: number, all: strings.Join(words, " ")}
		for _, w := range words {
			if !smallWords[w] {
				f.says = append(f.says, stem(w))
			}
		}
		all = append(all, f)
	}
	return all
}

// same reports whether two facts say the same. Either their words are equal, or one has all words of the other in the
// same order and little more, or both have nearly all of their many words in common. If each has something of its own,
// a name or a number, they differ.
func (f fact) same(o fact) bool {
	if f.all == o.all {
		return true
	}
	short, long := f.says, o.says
	if len(short) > len(long) {
		short, long = long, short
	}
	if len(short) < leastFactWords || float64(len(short)) < sameShare*float64(len(long)) {
		return false
	}
	if reworded(f.says, o.says) {
		return true
	}
	matched := 0
	for _, w := range long {
		if matched < len(short) && short[matched] == w {
			matched++
		} else if denies.MatchString(w) {
			return false
		}
	}
	return matched == len(short)
}

const (
	leastReworded = 5   // a fact with fewer different words is not compared without their order
	rewordedShare = 0.8 // share of the words of both that both must have
)

// reworded reports whether two facts have nearly the same words in any order. Words that deny, and numbers, must be the
// same.
func reworded(a, b []string) bool {
	has, both := map[string]int{}, 0
	for _, w := range a {
		has[w] |= 1
	}
	for _, w := range b {
		has[w] |= 2
	}
	for w, in := range has {
		if in == 3 {
			both++
		} else if denies.MatchString(w) {
			return false
		}
	}
	return both >= leastReworded && float64(both) >= rewordedShare*float64(len(has))
}

// denies matches words that turn a fact into another one.
var denies = regexp.MustCompile(`^(?:not|no|never|none|without|only|except|unless|t|cannot|\pN+)$`)

// knownFacts finds facts by their words.
type knownFacts struct {
	exact map[string]fact
	by    map[string][]fact // word → the facts that have it
}

// learn adds the facts of a file.
func (k *knownFacts) learn(f File) {
	if k.exact == nil {
		k.exact, k.by = map[string]fact{}, map[string][]fact{}
	}
	for i, line := range Lines(f.Content) {
		if heading.MatchString(line) {
			continue
		}
		for _, one := range factsOf(f.Path, i+1, line) {
			k.exact[one.all] = one
			for _, w := range one.says {
				if n := len(k.by[w]); n <= maxPostings {
					k.by[w] = append(k.by[w], one)
				}
			}
		}
	}
}

// like returns a known fact that says the same as f; found reports whether there is one.
func (k *knownFacts) like(f fact) (same fact, found bool) {
	if same, found = k.exact[f.all]; found {
		return same, true
	}
	words := slices.Clone(f.says)
	slices.SortFunc(words, func(a, b string) int { return len(k.by[a]) - len(k.by[b]) })
	for _, w := range words {
		candidates := k.by[w]
		if len(candidates) > maxPostings {
			break
		}
		for _, o := range candidates {
			if f.same(o) {
				return o, true
			}
		}
	}
	return same, false
}

var ofADay = regexp.MustCompile(`^\s*\S\s+\d{4}-\d{2}-\d{2}: `)

// recalls reports whether a line is an entry of recent activity that begins with a day and points to a file. Such an
// entry may say what stands in the file.
func recalls(l indexLine, file string) bool {
	return recentSection.MatchString(l.section) && ofADay.MatchString(l.text) && pointedTo([]indexLine{l}, file)
}

// checkDuplicates finds facts that another file also states, even in slightly different words.
func (c *indexCheck) checkDuplicates() {
	var known knownFacts
	for _, f := range c.others {
		known.learn(f)
	}
	for _, l := range c.lines {
		if !l.item && !l.row && !l.plain || l.inFence || l.row && c.headOfTable(l) {
			continue
		}
		for _, one := range factsOf("", l.number, l.text) {
			if same, found := known.like(one); found && !recalls(l, same.path) {
				c.add(ruleDuplicate, l, "says what stands in "+same.path+": point to it", false)
				break
			}
		}
	}
}

// maxDuplicates is how many duplicate facts a lint lists.
const maxDuplicates = 50

// Duplicate is a line that says the same as a line of another file.
type Duplicate struct {
	Path      string `json:"path"`
	Line      int    `json:"line" doc:"From 1."`
	OtherPath string `json:"other_path"`
	OtherLine int    `json:"other_line"`
	Text      string `json:"text" doc:"What the line says, in lower case and without signs."`
}

// duplicatesIn finds facts that two files state. It leaves out the index, because the index rules report those.
func duplicatesIn(files []File) []Duplicate {
	all := []Duplicate{}
	var known knownFacts
	for _, f := range files {
		if f.Path == ManifestPath {
			continue
		}
		for i, line := range Lines(f.Content) {
			if heading.MatchString(line) {
				continue
			}
			for _, one := range factsOf(f.Path, i+1, line) {
				if same, found := known.like(one); found && len(all) < maxDuplicates {
					all = append(all, Duplicate{f.Path, i + 1, same.path, same.line, one.all})
				}
			}
		}
		known.learn(f)
	}
	return all
}
