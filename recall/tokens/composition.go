package tokens

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Class is a kind of text. Vocabularies of different models divide texts of one class into about the same ratio of
// tokens, and texts of different classes into different ratios.
type Class int

// The classes. A text that is counted with the model's own vocabulary is all of Words. The numbers are stored.
const (
	Words     Class = iota // short Latin words, punctuation and spaces
	LongWords              // Latin words of three tokens and more, and those with accents: hardly English
	Fragments              // letters that form no words, and the digits between them, as in hashes and base64
	Digits                 // numbers
	Alphabets              // Greek, Cyrillic, Armenian, Georgian
	Abjads                 // Arabic, Syriac
	Syllabic               // scripts of South and Southeast Asia
	Han                    // Chinese and Japanese
	Hangul                 // Korean
	Signs                  // all other characters, such as emoji
	Frames                 // images, and what stands around messages
	Hashes                 // hexadecimal digits, of which vocabularies count fewer than of Fragments
	Hebrew                 // of which vocabularies count more than of Abjads
	classes
)

var classNames = [classes]string{"words", "long_words", "fragments", "digits", "alphabets", "abjads", "syllabic", "han",
	"hangul", "signs", "frames", "hashes",
	"hebrew"}

// Composition has how many tokens Loci counts for each class of a prompt.
type Composition [classes]int

// Total returns the tokens of all classes.
func (c Composition) Total() (n int) {
	for _, tokens := range c {
		n += tokens
	}
	return n
}

// Add adds the tokens of another composition.
func (c *Composition) Add(other Composition) {
	for class, tokens := range other {
		c[class] += tokens
	}
}

// Scaled returns a composition with the same shares and another total.
func (c Composition) Scaled(total int) Composition {
	was := int64(max(c.Total(), 1))
	for class, tokens := range c {
		c[class] = int(int64(tokens) * int64(total) / was)
	}
	return c
}

// MarshalJSON implements json.Marshaler: an object of the classes that have tokens.
func (c Composition) MarshalJSON() ([]byte, error) {
	named := map[string]int{}
	for class, tokens := range c {
		if tokens != 0 {
			named[classNames[class]] = tokens
		}
	}
	return json.Marshal(named)
}

// UnmarshalJSON implements json.Unmarshaler.
func (c *Composition) UnmarshalJSON(data []byte) error {
	var named map[string]int
	if err := json.Unmarshal(data, &named); err != nil {
		return fmt.Errorf("the composition of a prompt: %w", err)
	}
	*c = Composition{}
	for class, name := range classNames {
		c[class] = named[name]
	}
	return nil
}

// Estimate returns how many tokens a model with an unknown vocabulary counts for a text. It looks up words and
// punctuation in a small vocabulary; digits, spaces and the characters of each script have fixed costs. Everything in
// Loci that estimates tokens uses it. It takes some nanoseconds per byte.
func Estimate(text string) int { return compose(text).total() }

// compose returns the cost of a text by class.
func compose(text string) (c costs) {
	hash := 0 // where the run of hexadecimal digits ends
	for i := 0; i < len(text); {
		end, first := i+1, text[i]
		if isHexadecimal(first) && i >= hash && (i == 0 || kinds[text[i-1]] != letter && kinds[text[i-1]] != number) {
			hash = i + lengthOfHash(text[i:])
		}
		switch kind := kinds[first]; kind {
		case letter, mark:
			for end < len(text) && kinds[text[end]] == kind {
				end++
			}
			if kind == mark {
				c[Words] += costOfRun(text, i, end, costOfMarks)
				break
			}
			if end < len(text) && text[end] >= utf8.RuneSelf {
				end += moreLetters(text[end:])
			}
			cost := costOfRun(text, i, end, costOfWord)
			class := Hashes
			if i >= hash {
				class = classOfWord(text, i, end, cost)
			}
			c[class] += cost
		case number:
			end = i + lengthOfNumber(text[i:])
			class := Hashes
			if i >= hash {
				class = classOfNumber(text, i, end)
			}
			c[class] += (end - i) * digit
		case space:
			for end < len(text) && text[end] == ' ' {
				end++
			}
			c[Words] += costOfSpaces(end-i, text[end:])
		case newline:
			c[Words] += lineEnd
			for end < len(text) && text[end] == '\n' {
				end++
				c[Words] += oneToken
			}
		case control:
			c[Words] += oneToken
		default:
			if end = i + moreLetters(text[i:]); end > i {
				c[LongWords] += costOfWord(text[i:end], isSpaced(text, i))
				break
			}
			r, size := utf8.DecodeRuneInString(text[i:])
			end = i + size
			c[classOfRune(r)] += costOfRune(r, text[i:end], text[:i])
		}
		i = end
	}
	return c
}

// Limits of the words that are Fragments: a word with a digit beside it is shorter than leastWord, or a word of any
// length costs at least fragmentCost hundredths of a token for each of its bytes. English words cost about 25, base64
// costs about 60.
const (
	leastWord    = 4
	fragmentCost = 42
)

// longCost is the least cost of LongWords, in hundredths of a token.
const longCost = oneToken + 2*wordMore

// classOfWord returns the class of text[from:end], a run of Latin letters that costs this much.
func classOfWord(text string, from, end, cost int) Class {
	length := end - from
	digits := from > 0 && kinds[text[from-1]] == number || end < len(text) && kinds[text[end]] == number
	switch {
	case digits && length < leastWord, length >= leastWord && cost >= fragmentCost*length && isASCII(text[from:end]):
		return Fragments
	case cost < longCost && isASCII(text[from:end]):
		return Words
	}
	return LongWords
}

func isASCII(text string) bool { return ASCIIPrefix(text) == len(text) }

// classOfNumber returns the class of text[from:end], a run of digits.
func classOfNumber(text string, from, end int) Class {
	if from > 0 && kinds[text[from-1]] == letter || end < len(text) && kinds[text[end]] == letter {
		return Fragments
	}
	return Digits
}

// classOfRune returns the class of a character beyond ASCII that is not a Latin letter.
func classOfRune(r rune) Class {
	switch {
	case r < 0x370:
		return Signs
	case r < 0x590, 0x10A0 <= r && r < 0x1100, 0x1F00 <= r && r < 0x2000:
		return Alphabets
	case r < 0x600, 0xFB1D <= r && r < 0xFB50:
		return Hebrew
	case r < 0x900, 0xFB50 <= r && r < 0xFE00, 0xFE70 <= r && r < 0xFEFF:
		return Abjads
	case r < 0x10A0, 0x1780 <= r && r < 0x1800:
		return Syllabic
	case 0x1100 <= r && r < 0x1200, 0xAC00 <= r && r < 0xD7B0:
		return Hangul
	case 0x3000 <= r && r < 0xA000, 0xF900 <= r && r < 0xFB00, 0xFF00 <= r && r < 0xFFF0, 0x20000 <= r && r < 0x32000:
		return Han
	}
	return Signs
}

// costs has hundredths of a token for each class.
type costs [classes]int

// total returns the tokens of all classes, rounded up.
func (c costs) total() int {
	n := 0
	for _, cost := range c {
		n += cost
	}
	return (n + oneToken - 1) / oneToken
}

// rounded returns whole tokens with the same total. The class with the most has what rounding leaves.
func (c costs) rounded() (all Composition) {
	most := Class(0)
	for class, cost := range c {
		if all[class] = cost / oneToken; cost > c[most] {
			most = Class(class)
		}
	}
	all[most] += c.total() - all.Total()
	return all
}

func isHexadecimal(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

// leastHash is the least length of Hashes.
const leastHash = 4

// lengthOfHash returns the length of the hexadecimal number at the start of a text: digits and letters of one case, and
// no other letter behind them. It is 0 if there is none.
func lengthOfHash(text string) (n int) {
	if strings.HasPrefix(text, "0x") {
		n = len("0x")
	}
	digits, lower, upper := false, false, false
scan:
	for ; n < len(text); n++ {
		switch c := text[n]; {
		case '0' <= c && c <= '9':
			digits = true
		case 'a' <= c && c <= 'f':
			lower = true
		case 'A' <= c && c <= 'F':
			upper = true
		case kinds[c] == letter:
			return 0
		default:
			break scan
		}
	}
	if n < leastHash || !digits || lower == upper {
		return 0
	}
	return n
}

// lengthOfNumber returns the length of the digits at the start of a text.
func lengthOfNumber(text string) (n int) {
	for n < len(text) && text[n] < utf8.RuneSelf && kinds[text[n]] == number {
		n++
	}
	return n
}
