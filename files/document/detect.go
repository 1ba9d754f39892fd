package document

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/encoding"
)

// candidate is an encoding, with the languages that it is used for.
type candidate struct {
	charset   string
	languages []*language
	script    *script // instead of languages
	prior     float64
}

// candidates are the encodings that are guessed, with the logarithms of how frequent their texts are. Of two that
// decode a text alike, the first is taken.
var candidates = []candidate{
	{"windows-1252", western, nil, 0}, {"iso-8859-15", western, nil, -1}, {"windows-1250", central, nil, -1},
	{"iso-8859-2", central, nil, -1}, {"windows-1251", cyrillic, nil, -0.5}, {"koi8-r", cyrillic, nil, -1},
	{"koi8-u", cyrillic, nil, -1.5}, {"iso-8859-5", cyrillic, nil, -2}, {"ibm866", cyrillic, nil, -1},
	{"x-mac-cyrillic", cyrillic, nil, -3}, {"ibm855", cyrillic, nil, -4}, {"windows-1253", hellenic, nil, -2},
	{"iso-8859-7", hellenic, nil, -2.5}, {"windows-1254", turkic, nil, -1}, {"windows-1255", semitic, nil, -1},
	{"ibm862", semitic, nil, -3}, {"windows-1256", arabic, nil, -1}, {"iso-8859-6", arabic, nil, -2},
	{"windows-1257", baltic, nil, -1.5}, {"iso-8859-13", baltic, nil, -2}, {"iso-8859-4", baltic, nil, -3},
	{"windows-874", thai, nil, -1}, {"windows-1258", vietic, nil, -2}, {"macintosh", western, nil, -2},
	{"ibm850", western, nil, -2}, {"ibm437", western, nil, -2.5}, {"ibm852", central, nil, -3},
	{"iso-8859-16", central[5:], nil, -4}, {"x-mac-ce", central, nil, -5}, {"x-mac-greek", hellenic, nil, -12},
	{"iso-8859-3", southern, nil, -5}, {"shift_jis", nil, &japaneseScript, -3}, {"euc-jp", nil, &japaneseScript, -3.5},
	{"euc-kr", nil, &koreanScript, -3}, {"gb18030", nil, &chineseSimple, -3}, {"big5", nil, &chineseTraditional, -3},
	{"gb18030", nil, &chineseTraditional, -5},
}

// guessed is the encoding of a text, as far as its characters tell.
type guessed struct {
	charset  string
	encoding encoding.Encoding
	sure     float64 // probability, from 0 to 1, that no other encoding is right
	fit
}

// sureEnough is the probability from which on an encoding counts as known.
const sureEnough = 0.9

// GuessedEncoding says which encoding was taken, and how sure it is; "" if it is sure or there is none.
func GuessedEncoding(charset *string, sure *float64) string {
	if charset == nil || sure == nil || *sure >= sureEnough {
		return ""
	}
	return fmt.Sprintf("guessed: %s (%.0f %% sure)", *charset, 100**sure)
}

// guessSampleBytes is how much of a text decides.
const guessSampleBytes = 16 << 10

// guessCharset returns the encoding in which a sample is likeliest to be a text in one of its languages. Its score is
// the logarithm of the probability of the characters beyond ASCII. Encodings that decode the sample alike count once.
func guessCharset(sample []byte) guessed {
	sample = sample[:min(len(sample), guessSampleBytes)]
	type scored struct {
		guessed
		text  string
		score float64
	}
	var all []scored
	for _, c := range candidates {
		e, name := chosenCharset(c.charset)
		if e == nil {
			continue
		}
		text := decoded(sample, e)
		score := c.prior + c.score(text)
		same := slices.IndexFunc(all, func(s scored) bool { return s.text == text })
		if same < 0 {
			all = append(all, scored{guessed{charset: name, encoding: e}, text, score})
		} else {
			all[same].score = max(all[same].score, score)
		}
	}
	slices.SortStableFunc(all, func(a, b scored) int { return cmp.Compare(b.score, a.score) })
	others := 0.0
	for _, s := range all[1:] {
		others += math.Exp(s.score - all[0].score)
	}
	best := all[0].guessed
	best.sure = min(mostSure, 1/(1+others))
	if best.fit = fits(best.charset, []rune(all[0].text)); !best.isWell {
		best.sure = min(best.sure, unlikely)
	}
	return best
}

// Probabilities that a guess is right: at most, and of a text whose letters are not as frequent as in any language that
// is known. Then its encoding may be one that is not among the candidates.
const (
	mostSure = 0.999
	unlikely = 0.5
)

// How likely the characters of a text are at least, as logarithms: of letters, less than those of their language
// usually are. In languages with ASCII letters, few letters of a text count, and rare ones make a difference.
const (
	leastLikely      = -1.5
	leastLikelyASCII = -2.6
	leastLikelyHan   = -8  // of characters of East Asia
	leastText        = -7  // of any; else the bytes are no text if
	fewestBeyond     = 10  // so many of them, and
	shareBeyond      = 0.3 // so many of all, are beyond ASCII
)

// fit says how well a text looks like one in the languages of an encoding.
type fit struct {
	mean    float64 // how likely its characters beyond ASCII are
	isWell  bool    // they are as likely as they usually are
	isNoise bool    // they are so unlikely, and so many, that the bytes are no text
}

// fits says how well a text in an encoding looks like one of the languages for which it is used.
func fits(charset string, text []rune) (f fit) {
	beyond := 0
	for _, r := range text {
		if r >= utf8.RuneSelf {
			beyond++
		}
	}
	if beyond == 0 {
		return fit{isWell: true}
	}
	f.mean = math.Inf(-1)
	least := float64(leastLikelyHan)
	for _, c := range candidates {
		if c.charset != charset {
			continue
		}
		if c.script != nil {
			f.mean = max(f.mean, c.script.score(text)/float64(beyond))
		}
		for _, l := range c.languages {
			if mean := l.score(text) / float64(beyond); mean > f.mean {
				f.mean, least = mean, l.usual+leastLikely
				if l.isASCII {
					least = l.usual + leastLikelyASCII
				}
			}
		}
	}
	f.isWell = f.mean >= least
	f.isNoise = f.mean < min(least, leastText) && beyond >= fewestBeyond &&
		float64(beyond) >= shareBeyond*float64(len(text))
	return f
}

// score returns how likely a text is, in the language that fits best.
func (c candidate) score(text string) float64 {
	runes := []rune(text)
	if c.script != nil {
		return c.script.score(runes)
	}
	best := math.Inf(-1)
	for _, l := range c.languages {
		best = max(best, l.score(runes))
	}
	return best
}

// Weights of characters that are no letters of a language, as logarithms of their frequencies.
const (
	weighMark      = -4.6 // quotation marks, dashes and others that all languages use
	weighOther     = -12  // a letter of another script, or a symbol
	weighBroken    = -18  // undecodable, or a control character
	weighCapital   = -2   // a letter in upper case
	weighCapitals  = -0.5 // a letter in upper case behind another one
	weighMisplaced = -5   // upper case within a word, a symbol within a word, two scripts in a word
	weighFrame     = -1.5 // a line of a table's frame, which goes on
	weighCorner    = -4   // a corner of a table's frame, beside a line
	weighAlone     = -8   // a character of East Asia among ASCII letters
	maxASCII       = -12  // how much words in ASCII letters speak against a language without such letters
)

// unaccented is how many letters a text in lower case may have without an accent, in a language with accents.
const unaccented = 12

// score sums the weights of the characters beyond ASCII.
func (l *language) score(text []rune) (sum float64) {
	ascii, lower, accents := 0.0, 0, 0
	for i, r := range text {
		before, after := neighbor(text, i-1), neighbor(text, i+1)
		if r < utf8.RuneSelf {
			if isASCIILetter(r) {
				ascii += l.ascii
			}
			continue
		}
		weight, known := l.weight[unicode.ToLower(r)]
		isLetter := !isMark[r] && (unicode.IsLetter(r) || unicode.IsMark(r))
		switch {
		case r == utf8.RuneError || unicode.IsControl(r) || unicode.Is(unicode.Co, r) || unicode.Is(unicode.Cn, r):
			sum += weighBroken
			continue
		case known:
			sum += weight
			if unicode.IsLower(r) {
				lower++
			}
			if l.accents[r] {
				accents++
			}
		case isMark[r]:
			sum += weighMark
		case isFrame(r) && (r == before || r == after || strings.ContainsRune("│║", r) && isBlankRune(before) &&
			isBlankRune(after)):
			sum += weighFrame
			continue
		case isFrame(r) && (strings.ContainsRune("─═", before) || strings.ContainsRune("─═", after)):
			sum += weighCorner
			continue
		case isLetter && unicode.Is(unicode.Latin, r) == l.isASCII && r < 0x2000:
			sum += l.foreign
		default:
			sum += weighOther
		}
		sum += l.misplaced(r, before, after, isLetter)
		if isLetter && !l.isASCII && isAmongASCII(text, i) {
			sum += weighMisplaced
		}
	}
	if l.accents != nil && accents == 0 && lower > unaccented {
		sum += weighOther
	}
	if !l.isASCII {
		ascii = max(ascii, maxASCII)
	}
	return sum + ascii
}

// misplaced returns the weight of a character's place: upper case behind lower case, a symbol between letters, or a
// letter beside one of another script.
func (l *language) misplaced(r, before, after rune, isLetter bool) (weight float64) {
	switch {
	case unicode.IsUpper(r) && unicode.IsLower(before):
		weight = weighMisplaced
	case unicode.IsUpper(r) && (unicode.IsUpper(before) || unicode.IsUpper(after)):
		weight = weighCapitals
	case unicode.IsUpper(r):
		weight = weighCapital
	case unicode.IsLower(r) && unicode.IsUpper(before) && unicode.IsUpper(after):
		weight = weighMisplaced
	case !isLetter && unicode.IsLetter(before) && unicode.IsLetter(after) && !strings.ContainsRune("’–·\u200c", r):
		weight = weighMisplaced
	case strings.ContainsRune("¡¿", r) && (unicode.IsLetter(before) || !unicode.IsLetter(after)):
		weight = weighMisplaced
	case r == '°' && unicode.IsLetter(before), strings.ContainsRune("¼½¾©®±µ", r) && unicode.IsLetter(after):
		weight = weighMisplaced
	case l.isASCII && isLetter && isBlankRune(before) && isBlankRune(after) && !isLoneWord[unicode.ToLower(r)]:
		weight = weighMisplaced
	case strings.ContainsRune("–—", r) && unicode.IsLetter(before) != unicode.IsLetter(after):
		weight = weighCapital
	case strings.ContainsRune("ךםןףץς", r) && unicode.IsLetter(after), r == 'σ' && !unicode.IsLetter(after):
		weight = weighMisplaced // letters for the end of a word
	}
	return weight
}

// isAmongASCII reports whether the characters before and behind one, but for blanks, are ASCII letters, or one of them
// stands in the same word.
func isAmongASCII(text []rune, i int) bool {
	before, after := i-1, i+1
	for before >= 0 && text[before] == ' ' {
		before--
	}
	for after < len(text) && text[after] == ' ' {
		after++
	}
	isBefore, isAfter := isASCIILetter(neighbor(text, before)), isASCIILetter(neighbor(text, after))
	return isBefore && isAfter || isBefore && before == i-1 || isAfter && after == i+1
}

// neighbor returns a character of a text, or a blank beyond its ends.
func neighbor(text []rune, i int) rune {
	if i < 0 || i >= len(text) {
		return ' '
	}
	return text[i]
}

func isASCIILetter(r rune) bool { return r|0x20 >= 'a' && r|0x20 <= 'z' }

// isMark are the characters beyond ASCII that texts in all languages may have.
var isMark = runesOf("“”‘’„‚«»‹›–—…•·§©®°№€£¥±²³½¼¾×µ™†ªº¿¡\u00a0\u00ad")

// isLoneWord are the letters beyond ASCII that are words in languages with ASCII letters.
var isLoneWord = runesOf("àéèáåöőíäæêô")

func isBlankRune(r rune) bool { return r == ' ' || r == '\n' || r == '\r' || r == '\t' }

// isFrame reports whether a character draws the frames of tables.
func isFrame(r rune) bool { return r >= 0x2500 && r <= 0x259f }

// score sums the weights of the characters beyond ASCII. A character that is two bytes long counts as much as two of
// one byte.
func (s *script) score(text []rune) (sum float64) {
	for i, r := range text {
		switch {
		case r < utf8.RuneSelf:
		case r == utf8.RuneError || unicode.IsControl(r) || unicode.Is(unicode.Co, r):
			sum += weighBroken
		default:
			sum += s.weigh(r)
			before, after := neighbor(text, i-1), neighbor(text, i+1)
			if before < utf8.RuneSelf && after < utf8.RuneSelf && (isASCIILetter(before) || isASCIILetter(after)) {
				sum += weighAlone
			}
		}
	}
	return sum
}
