package document

import (
	"strings"

	"github.com/andybalholm/cascadia"
	"github.com/tdewolff/parse/v2"
	"github.com/tdewolff/parse/v2/css"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// Limits of reading stylesheets. Beyond them, nothing more is hidden.
const (
	maxStyleSteps  = 20_000_000 // comparisons of rules with elements and the elements around them
	maxCombinators = 2          // in a selector
)

// stylesheet has those rules of a page's own style elements that hide or show elements, in order. It leaves out rules
// in other files, rules within rules, and selectors with pseudo-classes or siblings.
type stylesheet struct {
	rules []styleRule
	steps int // steps that are left
}

// styleRule displays the elements of a selector, makes them visible, or hides them.
type styleRule struct {
	property    string
	hides       bool
	important   bool
	last, whole cascadia.Sel // selector for the element itself, and selector including the elements around it
	combinators int
}

// styleScope says where rules apply.
type styleScope int

const (
	everyScreen styleScope = iota
	someScreens            // rules that hide are ignored, because another reader may see the text
	noScreen
)

// stylesheetOf reads the style elements of a page.
func stylesheetOf(doc *html.Node) *stylesheet {
	s := &stylesheet{steps: maxStyleSteps}
	for n := range doc.Descendants() {
		if n.DataAtom != atom.Style {
			continue
		}
		if kind := attribute(n, "type"); kind == "" || strings.EqualFold(kind, "text/css") {
			s.read(textOf(n), mediaScope(attribute(n, "media")))
		}
	}
	return s
}

// mediaScope returns where rules for a list of media apply.
func mediaScope(list string) styleScope {
	scope := noScreen
	for media := range strings.SplitSeq(strings.ToLower(list), ",") {
		switch media = strings.TrimPrefix(strings.TrimSpace(media), "only "); {
		case media == "" || media == "all" || media == "screen":
			return everyScreen
		case !strings.HasPrefix(media, "print") && !strings.HasPrefix(media, "speech"):
			scope = someScreens
		}
	}
	return scope
}

// styleBlock is a block of rules or declarations within others.
type styleBlock struct {
	selectors string // selectors of its declarations
	scope     styleScope
}

// read adds the rules of a style element that hide or show elements.
func (s *stylesheet) read(text string, scope styleScope) {
	p := css.NewParser(parse.NewInputString(text), false)
	blocks := []styleBlock{{scope: scope}}
	for {
		kind, _, name := p.Next()
		outer := blocks[len(blocks)-1]
		switch kind {
		case css.ErrorGrammar:
			if !p.HasParseError() {
				return
			}
		case css.BeginAtRuleGrammar:
			scope := max(outer.scope, atRuleScope(string(name), written(p.Values())))
			blocks = append(blocks, styleBlock{outer.selectors, scope})
		case css.BeginRulesetGrammar:
			if outer.selectors != "" {
				outer.scope = noScreen
			}
			blocks = append(blocks, styleBlock{written(p.Values()), outer.scope})
		case css.EndRulesetGrammar, css.EndAtRuleGrammar:
			blocks = blocks[:max(len(blocks)-1, 1)]
		case css.DeclarationGrammar:
			s.declare(outer, strings.ToLower(string(name)), p.Values())
		default:
		}
	}
}

// atRuleScope returns where the rules within an at-rule apply.
func atRuleScope(name, prelude string) styleScope {
	if strings.EqualFold(name, "@media") {
		return mediaScope(prelude)
	}
	return someScreens
}

func written(tokens []css.Token) string {
	var b strings.Builder
	for _, t := range tokens {
		b.Write(t.Data)
	}
	return b.String()
}

// declare adds a declaration of a block.
func (s *stylesheet) declare(block styleBlock, property string, values []css.Token) {
	if property != "display" && property != "visibility" || len(values) == 0 {
		return
	}
	value := strings.ToLower(string(values[0].Data))
	r := styleRule{property: property, hides: value == "none" || value == "hidden" || value == "collapse",
		important: strings.HasSuffix(strings.ToLower(written(values)), "!important")}
	if block.scope == noScreen || block.scope == someScreens && r.hides {
		return
	}
	for selector := range strings.SplitSeq(block.selectors, ",") {
		parts := strings.FieldsFunc(selector, func(c rune) bool { return c == ' ' || c == '>' })
		if r.combinators = len(parts) - 1; r.combinators < 0 || r.combinators > maxCombinators ||
			strings.ContainsAny(selector, ":~+|\\") {
			continue
		}
		var badPart, bad error
		r.last, badPart = cascadia.Parse(parts[len(parts)-1])
		if r.whole, bad = cascadia.Parse(strings.TrimSpace(selector)); badPart == nil && bad == nil {
			s.rules = append(s.rules, r)
		}
	}
}

// hides reports whether a stylesheet hides an element of the page. The last of the most specific rules decides, unless
// the element's own style attribute does. The page itself never counts as hidden.
func (s *stylesheet) hides(n *html.Node) bool {
	if len(s.rules) == 0 || n.DataAtom == atom.Html || n.DataAtom == atom.Body {
		return false
	}
	best := map[string]*styleRule{}
	for i := range s.rules {
		r := &s.rules[i]
		if before := best[r.property]; s.matches(r, n) && (before == nil || !before.outranks(r)) {
			best[r.property] = r
		}
	}
	for property, r := range best {
		if r.hides && (r.important || !setsProperty(attribute(n, "style"), property)) {
			return s.steps > 0
		}
	}
	return false
}

// outranks reports whether a rule still applies although a later one says otherwise.
func (r *styleRule) outranks(later *styleRule) bool {
	if r.important != later.important {
		return r.important
	}
	return later.whole.Specificity().Less(r.whole.Specificity())
}

// matches reports whether a rule applies to an element. It counts the steps that this takes.
func (s *stylesheet) matches(r *styleRule, n *html.Node) bool {
	if s.steps--; s.steps <= 0 || !r.last.Match(n) {
		return false
	}
	if r.combinators == 0 {
		return true
	}
	depth, steps := 0, 1
	for above := n.Parent; above != nil; above = above.Parent {
		depth++
	}
	for range r.combinators {
		steps *= depth
	}
	s.steps -= depth + steps
	return r.whole.Match(n)
}

// setsProperty reports whether an element's style attribute sets a property.
func setsProperty(style, property string) bool {
	p := css.NewParser(parse.NewInputString(style), true)
	for {
		switch kind, _, name := p.Next(); {
		case kind == css.DeclarationGrammar && strings.EqualFold(string(name), property):
			return true
		case kind == css.ErrorGrammar && !p.HasParseError():
			return false
		}
	}
}
