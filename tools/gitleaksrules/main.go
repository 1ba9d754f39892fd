// Command gitleaksrules writes gitleaks.json to standard output: the rules of the gitleaks version below, changed to
// search in JSON. `go generate ./recall/redact` runs it.
package main

import (
	"encoding/json"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
)

const gitleaks = "github.com/zricethezav/gitleaks/v8@v8.30.1"

// fixedChars is how many characters of a secret must be fixed for the rule to count as certain. Hyphens do not count,
// because ids have them too.
const fixedChars = 3

// certainly lists rules that are certain despite fewer fixed characters, and why.
var certainly = map[string]string{
	"1password-secret-key": "A3- and five groups of capitals",
	"mailchimp-api-key":    "follows the name and ends with -us and a number",
}

// uncertain lists rules that are not certain despite enough fixed characters, and why.
var uncertain = map[string]string{
	"atlassian-api-token":                    "one shape is any 24 characters after the name; our rule has the other",
	"azure-ad-client-secret":                 "misses secrets in JSON; our rule finds them",
	"aws-amazon-bedrock-api-key-short-lived": "finds only the start; our rule finds the whole key",
	"private-key":                            "matches across quotes; our rule parses the block",
	"facebook-page-access-token":             "EAAC and 100 letters occur in base64",
	"jwt":                                    "its backslashes match a quote's escape; ours do not",
	"square-access-token":                    "EAAA occurs in base64 wherever there are zeros",
}

// redundant lists keywords of rules with patterns that always contain another keyword.
var redundant = map[string]string{
	"cloudflare-origin-ca-key": "cloudflare",
	"gocardless-api-token":     "live_",
	"intra42-client-secret":    "intra",
}

type allowlist struct {
	RegexTarget string
	Regexes     []string
	StopWords   []string
}

type rule struct {
	ID          string
	Regex       string
	Path        string
	Entropy     float64
	SecretGroup int
	Keywords    []string
	Allowlists  []allowlist
}

type config struct {
	Allowlist allowlist
	Rules     []rule
}

func main() {
	log.SetFlags(0)
	c := read()
	var out struct {
		Allow outAllowlist `json:"allow"`
		Rules []outRule    `json:"rules"`
	}
	out.Allow = c.Allowlist.out()
	for _, r := range c.Rules {
		if r.Path == "" && r.Regex != "" {
			out.Rules = append(out.Rules, r.out())
		}
	}
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "\t")
	if err := encoder.Encode(out); err != nil {
		log.Fatal(err)
	}
}

// outRule and outAllowlist are rules and allowlists in the form that package redact reads.
type outRule struct {
	ID      string         `json:"id"`
	Pattern string         `json:"pattern"`
	Exact   []string       `json:"exact,omitempty"`
	Folded  []string       `json:"folded,omitempty"`
	Entropy float64        `json:"entropy,omitempty"`
	Group   int            `json:"group,omitempty"`
	Longest int            `json:"longest,omitempty"`
	Certain bool           `json:"certain,omitempty"`
	Allow   []outAllowlist `json:"allow,omitempty"`
}

type outAllowlist struct {
	Patterns []string `json:"patterns,omitempty"`
	Words    string   `json:"words,omitempty"`
	Match    bool     `json:"match,omitempty"`
}

// read returns the rules in the gitleaks module.
func read() (c config) {
	raw, err := exec.Command("go", "mod", "download", "-json", gitleaks).Output()
	if err != nil {
		log.Fatalf("go mod download %s: %v", gitleaks, err)
	}
	var module struct{ Dir string }
	if err := json.Unmarshal(raw, &module); err != nil {
		log.Fatal(err)
	}
	if _, err := toml.DecodeFile(filepath.Join(module.Dir, "config", "gitleaks.toml"), &c); err != nil {
		log.Fatal(err)
	}
	return c
}

func (r rule) out() outRule {
	o := outRule{ID: r.ID, Pattern: r.pattern(), Entropy: r.Entropy, Group: r.SecretGroup}
	tree, err := syntax.Parse(o.Pattern, syntax.Perl)
	if err != nil {
		log.Fatalf("%s: %v", r.ID, err)
	}
	var inside bool
	if o.Exact, o.Folded, inside = r.keywords(); inside {
		o.Longest = longestMatch(tree)
	}
	o.Certain = certainly[r.ID] != "" || secretFixed(tree, r.SecretGroup) >= fixedChars && uncertain[r.ID] == ""
	for _, a := range r.Allowlists {
		if len(a.Regexes)+len(a.StopWords) > 0 && a.RegexTarget != "line" {
			o.Allow = append(o.Allow, a.out())
		}
	}
	return o
}

func (a allowlist) out() outAllowlist {
	words := slices.Sorted(slices.Values(a.StopWords))
	return outAllowlist{Patterns: a.Regexes, Words: strings.Join(words, " "), Match: a.RegexTarget == "match"}
}

// A secret may follow an escape in JSON or in a URL. It ends before any byte that it cannot contain, such as a comma.
// These replace the beginnings and ends of gitleaks' patterns.
const (
	boundary   = `\b`
	shapeStart = "(?:" + boundary + `|\\{1,4}[nrtbf]|\\{1,4}u[0-9A-Fa-f]{4}|%[0-9A-Fa-f]{2})`
	end        = `(?:[\x60'"\s;]|\\[nr]|$)`
	shapeEnd   = `(?:[^\w-]|$)`
)

// pattern returns the rule's pattern, changed to match in texts that may be JSON, encoded once or twice.
func (r rule) pattern() string {
	p := r.Regex
	const anyPrefix = `[\w.-]{0,50}?` // text before a provider's name, which need not match
	for _, name := range []string{anyPrefix + "(?i:" + anyPrefix, "(?i)" + anyPrefix} {
		p = strings.Replace(p, name, strings.ReplaceAll(name, anyPrefix, ""), 1)
	}
	p = strings.NewReplacer(`[\s'"]{0,3}`, `[\s'"\\]{0,6}`, `[\x60'"\s=]{0,5}`, `[\x60'"\s=\\]{0,8}`,
		end, shapeEnd).Replace(p)
	for _, tail := range []string{`(?:[\x60'"\s;]|\\[nr]|$|\b)`, `(?:[^\w-]|\z)`, `(?:[^a-zA-Z0-9+/]|\z)`} {
		p = strings.TrimSuffix(p, tail)
	}
	p = strings.ReplaceAll(p, `([a-z0-9]{4}-){3}`, `(?:[a-z0-9]{4}-){3}`) // the secret is outside this group
	p = namedGroup.ReplaceAllString(p, "(?:")
	if rest, ok := strings.CutPrefix(p, "(?i)"+boundary); ok {
		return "(?i)" + shapeStart + rest
	}
	rest, ok := strings.CutPrefix(p, boundary)
	if !ok || strings.HasPrefix(rest, "curl") {
		return p
	}
	if tree, err := syntax.Parse(p, syntax.Perl); err != nil || tree.MaxCap() > 0 {
		return shapeStart + rest
	}
	if secret, ok := strings.CutSuffix(rest, boundary); ok {
		return shapeStart + "(" + secret + ")" + boundary
	}
	return shapeStart + "(" + rest + ")"
}

var namedGroup = regexp.MustCompile(`\(\?P<\w+>`)

// keywords returns the rule's keywords: exact ones where the pattern is case-sensitive, others in lower case. inside
// reports whether the pattern contains all of them.
func (r rule) keywords() (exact, folded []string, inside bool) {
	plain := strings.ReplaceAll(r.Regex, `\`, "")
	lower := strings.ToLower(plain)
	inside = true
	for _, k := range r.Keywords {
		if k == redundant[r.ID] {
			continue
		}
		index := strings.Index(lower, k)
		inside = inside && index >= 0
		if index >= 0 && !strings.Contains(lower[:index], "(?i") &&
			strings.Count(lower, k) == strings.Count(plain, plain[index:index+len(k)]) {
			exact = append(exact, plain[index:index+len(k)])
		} else {
			folded = append(folded, k)
		}
	}
	return exact, folded, inside
}

// secretFixed returns how many characters of the rule's secret are fixed. The secret is the given group, else the first
// group, else the whole match.
func secretFixed(tree *syntax.Regexp, group int) int {
	if tree.MaxCap() == 0 {
		return fixed(tree)
	}
	fewest := -1
	var visit func(*syntax.Regexp)
	visit = func(t *syntax.Regexp) {
		if t.Op == syntax.OpCapture && (group == 0 || t.Cap == group) {
			if n := fixed(t); fewest < 0 || n < fewest {
				fewest = n
			}
			if group == 0 {
				return // a group inside of another is not the first
			}
		}
		for _, s := range t.Sub {
			visit(s)
		}
	}
	visit(tree)
	return fewest
}

// fixed returns how many characters of a match are always the same, or one of at most four, without hyphens.
func fixed(t *syntax.Regexp) int {
	switch t.Op {
	case syntax.OpLiteral:
		return len(strings.ReplaceAll(string(t.Rune), "-", ""))
	case syntax.OpCharClass:
		chars := 0
		for i := 0; i < len(t.Rune); i += 2 {
			chars += int(t.Rune[i+1]-t.Rune[i]) + 1
		}
		if chars <= 4 {
			return 1
		}
	case syntax.OpCapture, syntax.OpPlus:
		return fixed(t.Sub[0])
	case syntax.OpRepeat:
		return fixed(t.Sub[0]) * t.Min
	case syntax.OpConcat:
		sum := 0
		for _, s := range t.Sub {
			sum += fixed(s)
		}
		return sum
	case syntax.OpAlternate:
		fewest := fixed(t.Sub[0])
		for _, s := range t.Sub[1:] {
			fewest = min(fewest, fixed(s))
		}
		return fewest
	}
	return 0
}

// longestMatch returns the largest number of bytes in an ASCII match; 0 if there is no bound.
func longestMatch(t *syntax.Regexp) int {
	switch t.Op {
	case syntax.OpLiteral:
		return len(t.Rune)
	case syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return 1
	case syntax.OpRepeat:
		return max(t.Max, 0) * longestMatch(t.Sub[0])
	case syntax.OpCapture, syntax.OpQuest:
		return longestMatch(t.Sub[0])
	case syntax.OpConcat, syntax.OpAlternate:
		sum, longest := 0, 0
		for _, s := range t.Sub {
			n := longestMatch(s)
			if n == 0 && !matchesEmpty(s) {
				return 0
			}
			sum, longest = sum+n, max(longest, n)
		}
		if t.Op == syntax.OpConcat {
			return sum
		}
		return longest
	}
	return 0
}

// matchesEmpty reports whether a pattern matches only positions, no bytes.
func matchesEmpty(t *syntax.Regexp) bool {
	return slices.Contains([]syntax.Op{syntax.OpEmptyMatch, syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText,
		syntax.OpEndText, syntax.OpWordBoundary, syntax.OpNoWordBoundary}, t.Op)
}
