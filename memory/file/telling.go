package file

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxLineChars is how many characters a line of an index may have.
const maxLineChars = 200

// maxInlineChars is how many characters a line may have that tells something: an introduction, or a line in a section
// for short facts.
const maxInlineChars = 120

// inlineSections are the sections in which lines may tell short facts.
var inlineSections = regexp.MustCompile(`^(?:users?|people|rules|behaviou?r.*|recent.*)$`)

// tells reports whether a line tells something and points nowhere, or is too long for a pointer. Introductions, heads
// of tables, and lines in inlineSections may tell something short.
func (c *indexCheck) tells(l indexLine) bool {
	if !l.item && !l.row && !l.plain {
		return false
	}
	chars := utf8.RuneCountInString(strings.TrimSpace(l.text))
	if chars > maxLineChars {
		return true
	}
	if len(l.pointers) > 0 || l.row && c.headOfTable(l) {
		return false
	}
	short := inlineSections.MatchString(l.section) || l.plain && c.isIntroduction(l)
	return chars > maxInlineChars || !short || ofRules.MatchString(l.section) && slices.ContainsFunc(l.cells(), isState)
}

// ofRules matches the names of sections for rules of conduct. A rule says what to do: such a section has no facts.
var ofRules = regexp.MustCompile(`^(?:rules|behaviou?r.*)$`)

// being matches the verbs with which a sentence says how something is, and not what to do.
var being = regexp.MustCompile(`(?i)\b(?:is|are|was|were|has|had|ist|sind|hat|est|sont|es|son|tiene)\b`)

// isState reports whether a text says how something is.
func isState(text string) bool {
	return states(text) && being.MatchString(text) && !conditional.MatchString(text)
}

// conditional matches words that make a sentence with such a verb a rule.
var conditional = regexp.MustCompile(`(?i)\b(?:if|when|unless|until|before|after|must|should|never|always|wenn|falls|` +
	`bevor|si|quand|cuando|antes)\b|^\W*(?:ask|use|write|answer|check|do|don['’]t|be|keep|tell|say|avoid)\b`)

// headOfTable reports whether a row names the columns of a table, or is the line below that row.
func (c *indexCheck) headOfTable(l indexLine) bool {
	next := l.number // index of the next line
	return separator.MatchString(l.text) || next < len(c.lines) && c.lines[next].row &&
		separator.MatchString(c.lines[next].text)
}

// maxIntroLines is how many lines an introduction may have.
const maxIntroLines = 3

// ofIndexes matches words with which an index speaks of itself.
var ofIndexes = regexp.MustCompile(`(?i)\b(?:index|notes?|memory|memories|files?|pointers?)\b|索引|笔记|文件`)

// isIntroduction reports whether a line introduces the list or the table below it, or is in the first paragraph and
// speaks of the index.
func (c *indexCheck) isIntroduction(l indexLine) bool {
	if strings.HasSuffix(strings.TrimSpace(l.text), ":") && c.introduces(l) {
		return true
	}
	hasText := func(o indexLine) bool { return o.item || o.row || o.plain || o.inFence }
	first := slices.IndexFunc(c.lines, hasText)
	if l.number-1-first >= maxIntroLines ||
		slices.ContainsFunc(c.lines[first:l.number], func(o indexLine) bool { return !o.plain }) {
		return false
	}
	return slices.ContainsFunc(c.lines[first:min(first+maxIntroLines, len(c.lines))], func(o indexLine) bool {
		return o.plain && ofIndexes.MatchString(o.text)
	})
}

// introduces reports whether the next line that is not empty is an item or a row.
func (c *indexCheck) introduces(l indexLine) bool {
	for _, next := range c.lines[l.number:] {
		if strings.TrimSpace(next.text) != "" {
			return next.item || next.row
		}
	}
	return false
}

// anyWord matches a word, even a short one.
var anyWord = regexp.MustCompile(`[\pL\pN][\pL\pM\pN]*`)

// stating matches a verb with which a sentence tells a fact, and the word behind it.
var stating = regexp.MustCompile(
	`(?i)\b(?:is|are|was|were|has|have|must|should|will|needs?|requires?|prefers?|` +
		`ist|sind|muss|müssen|soll|sollen|braucht|sont|doit|doivent|debe|deben|tiene|prefiere)\s+([\pL\pN]+)`)

// These match words around such a verb in lines that state no fact, but only a file's topic or the place of something.
var (
	asking = regexp.MustCompile(`(?i)\b(?:what|how|who|where|when|why|which|that|if|whether|for|there|` +
		`wie|wer|wo|wann|warum|welche[rsnm]?|ob|dass|comment|qui|que|pour|quand|para)\b|^\W*was\s`)
	placed = regexp.MustCompile(`(?i)^(?:in|at|on|under|here|there|kept|stored|described|listed|written|documented|` +
		`im|hier|unter|dans|sur|en)$`)
)

// These are the same for Chinese, which has no spaces between words.
var (
	statingHan = regexp.MustCompile(`\p{Han}.*(?:是|为|等于|必须|应该|应当|需要|不能|不得|禁止|喜欢|偏好).*[\p{Han}\pN]`)
	askingHan  = regexp.MustCompile(`什么|如何|怎么|怎样|谁|哪|何时|为何|是否|关于`)
)

// maxLabelHan: a text only names something if it has at most this many Chinese characters.
const maxLabelHan = 6

var han = regexp.MustCompile(`\p{Han}`)

// tellsBeside reports whether a line with a pointer also tells a fact. In inlineSections a short line may.
func tellsBeside(l indexLine) bool {
	if len(l.pointers) == 0 || !l.item && !l.row && !l.plain || inlineSections.MatchString(l.section) &&
		utf8.RuneCountInString(strings.TrimSpace(l.text)) <= maxInlineChars {
		return false
	}
	if l.item && slices.ContainsFunc(partsOf(l.text), func(part string) bool { return factOf(part) }) {
		return true
	}
	return slices.ContainsFunc(l.cells(), func(cell string) bool { return !isLabel(cell) && states(cell) })
}

// partsOf returns the parts of a list item that a dash, a colon or brackets set apart, without pointers and bullets.
func partsOf(text string) []string {
	text = bullet.ReplaceAllString(withoutPointers(text), "")
	return append(between.Split(text, -1), text)
}

// factOf reports whether a part of a list item tells a fact about the subject of the item. In "Ada: lives in Oslo" the
// part before the colon is the subject.
func factOf(part string) bool {
	if valued.MatchString(part) || acts(part) && !ofMany.MatchString(part) {
		return true
	}
	at := ofSubject.FindStringSubmatchIndex(part)
	return at != nil && !behindNoun.MatchString(part[at[2]:at[3]]) || ofPerson.MatchString(part)
}

var (
	bullet  = regexp.MustCompile(`^\s*(?:[^\pL\pN\s]{1,2}|\(?(?:\d+|\pL)[.)])\s+`)
	between = regexp.MustCompile(`\s[-–—]+\s|[:;()]\s*|\s*→\s*`)

	// ofSubject matches a verb at the beginning of a part, and the word behind it.
	ofSubject = regexp.MustCompile(`(?i)^\W*(?:is|are|were|has|had|lives|likes|loves|hates|prefers|wants|speaks|` +
		`drinks|listens|runs|uses|owns|needs|requires|must|should|cannot|became|moved|ist|sind|hat|wohnt|mag|est|sont|` +
		`habite|aime|es|son|tiene|vive)\s+([\pL\pN]+)`)

	// ofMany matches words behind which "runs" or "uses" is a noun.
	ofMany = regexp.MustCompile(`(?i)^\W*(?:all|each|every)\s`)

	// ofPerson matches a sentence about a person, or one that says what to do.
	ofPerson = regexp.MustCompile(`^\W*(?i:i|we|you|they|he|she|it)\s+\pL|^\W*(?i:never|always|do not|don['’]t)\s+\pL|` +
		`^\W*\p{Lu}\pL+\s+(?:lives|likes|loves|hates|prefers|wants|speaks|drinks|owns|needs|became|moved)\s+\pL`)
)

// isLabel reports whether a text has so few words that it only names something.
func isLabel(text string) bool {
	return len(anyWord.FindAllString(text, -1)) <= maxLabelWords && len(han.FindAllString(text, -1)) <= maxLabelHan
}

// states reports whether a text tells a fact. Saying where something is written does not count.
func states(text string) bool {
	if statingHan.MatchString(text) && !askingHan.MatchString(text) {
		return true
	}
	for _, match := range stating.FindAllStringSubmatchIndex(text, -1) {
		subject := text[:match[0]]
		if anyWord.MatchString(subject) && !asking.MatchString(subject) &&
			(!placed.MatchString(text[match[2]:match[3]]) || placesThing(text[match[3]:])) {
			return true
		}
	}
	return false
}

// placesThing reports whether the words behind "is in" name a place other than a file or a note.
func placesThing(text string) bool {
	return strings.ContainsFunc(text, unicode.IsDigit) || !isLabel(text) && !ofIndexes.MatchString(text)
}

// maxHeadingChars is how many characters a heading may have that names a topic.
const maxHeadingChars = 80

var (
	// acting matches a sentence with a verb that may also be a noun, and the word behind the verb.
	acting = regexp.MustCompile(`(?i)^\W*(?:the|an?|our|my|his|her|its|their|this|all|each|every)\s+\pL.*?\s` +
		`(?:runs?|uses?|lives?|listens?|works?|likes?|loves|hates|wants?|speaks?|drinks?|costs?|takes?|means|starts?|` +
		`stands|expects?|supports?|returns?|sends?|owns|holds|keeps?|fails?|can|cannot|may|does|did|became|moved|` +
		`changed)\s+([\pL\pN]+)`)
	// behindNoun matches the words that show such a word to be a noun.
	behindNoun = regexp.MustCompile(`(?i)^(?:of|and|or|for|with|from|to|by|per)$`)
	// clause matches words that put the verb in a subordinate clause, such as "bugs we have fixed".
	clause = regexp.MustCompile(`(?i)\S\s+(?:i|we|you|they|he|she)\s`)
	// lastParticiple matches the participle at the end of such a clause.
	lastParticiple = regexp.MustCompile(`(?i)\b(?:has|have|had|is|are|was|were)\s+\pL+(?:ed|en|made|done|said|met)\W*$`)

	// valued matches a setting with its value.
	valued = regexp.MustCompile(`(?i)\b(?:port|host|ip|url|address|version|pin|id)\s*[:=]\s*\S*\d|` +
		`\b(?:pass(?:word|phrase|wd)|pwd|secret|token|key)\s*[:=]\s*\S+\s*$|\b\d{1,3}(?:\.\d{1,3}){3}\b`)
	// number matches a long number, and before it a word that makes it the name of something.
	number = regexp.MustCompile(`(?i)(?:(?:^|[^\pL\pN])(rfc|iso|issues?|tickets?|prs?|case|error|code|status|https?|` +
		`#|no\.?|\pL+-)[\s#-]*)?\b(\d{4,})\b`)
	year = regexp.MustCompile(`^(?:19|20)\d\d$`)
)

// headingTells reports whether a heading tells a fact instead of naming a topic.
func headingTells(heading string) bool {
	text := strings.TrimSpace(strings.Trim(withoutPointers(heading), "#*_> "))
	switch {
	case utf8.RuneCountInString(text) > maxHeadingChars, valued.MatchString(text):
		return true
	case isLabel(text):
		return false
	case !clause.MatchString(text) && !lastParticiple.MatchString(text) && (states(text) || acts(text)):
		return true
	}
	return slices.ContainsFunc(number.FindAllStringSubmatch(text, -1), func(match []string) bool {
		return match[1] == "" && !year.MatchString(match[2])
	})
}

// acts reports whether a heading is a sentence as acting matches it.
func acts(text string) bool {
	at := acting.FindStringSubmatchIndex(text)
	return at != nil && !behindNoun.MatchString(text[at[2]:at[3]]) && !asking.MatchString(text[:at[2]])
}
