package redact_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/loci-memory/loci/db/dbtest/scale"
	"github.com/loci-memory/loci/recall/redact"
)

var entropic = redact.New([]byte("a key"), redact.Options{Entropy: true})

// pieces generates parts of texts that are hard to redact: secrets, prefixes of secrets, and separators.
func pieces() *rapid.Generator[string] {
	var secrets []string
	for _, f := range fakes() {
		secrets = append(secrets, f.secret)
	}
	return rapid.OneOf(
		rapid.SampledFrom(secrets), rapid.SampledFrom(redact.Keywords()),
		rapid.StringMatching(`[A-Za-z0-9_+/=-]{1,60}`),
		rapid.SampledFrom([]string{" ", "\n", "\t", "\\", "\\n", "\"", "'", "`", ",", ".", "-", "_", "=", ":", "://",
			"@", "[", "]", "é", "\x00", "[REDACTED:", "[REDACTED:jwt:7:0123abcd]",
			"Authorization: Bearer ", "-----END PRIVATE KEY-----",
			"password = ", "sha256~"}),
		rapid.String())
}

func texts() *rapid.Generator[string] {
	return rapid.Map(rapid.SliceOfN(pieces(), 0, 12), func(parts []string) string { return strings.Join(parts, "") })
}

func TestRedactingAgainChangesNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := texts().Draw(t, "text")
		for _, r := range []*redact.Redactor{plain, entropic} {
			once := r.Redact(text)
			if twice := r.Redact(once); twice != once {
				t.Fatalf("%q: got %q, again %q", text, once, twice)
			}
			if utf8.ValidString(text) && !utf8.ValidString(once) {
				t.Fatalf("%q: %q is not UTF-8 any more", text, once)
			}
		}
	})
}

// document generates JSON values with strings from a generator.
func document(text *rapid.Generator[string], depth int) *rapid.Generator[any] {
	leaves := []*rapid.Generator[any]{text.AsAny(), rapid.Int().AsAny(), rapid.Float64Range(-1e30, 1e30).AsAny(),
		rapid.Bool().AsAny(), rapid.Just[any](nil)}
	if depth > 0 {
		leaves = append(leaves, rapid.SliceOfN(document(text, depth-1), 0, 4).AsAny(),
			rapid.MapOfN(text, document(text, depth-1), 0, 4).AsAny())
	}
	return rapid.OneOf(leaves...)
}

// nested returns a JSON document that contains a value, directly or encoded up to twice as a string.
func nested(t *rapid.T, value any, text *rapid.Generator[string]) string {
	for range rapid.IntRange(0, 2).Draw(t, "wrappings") {
		key := rapid.StringMatching(`[a-z]{1,8}`).Draw(t, "key")
		raw, err := json.Marshal(map[string]any{key: value, "rest": document(text, 2).Draw(t, "rest")})
		if err != nil {
			t.Fatal(err)
		}
		value = string(raw)
	}
	raw, err := json.Marshal([]any{value, document(text, 2).Draw(t, "more")})
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestASecretInJSONIsGone(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		f := rapid.SampledFrom(fakes()).Draw(t, "secret")
		text := f.secret
		if f.around != "" {
			text = strings.Replace(f.around, "%s", text, 1)
		}
		raw := nested(t, text, rapid.String())
		middle := f.secret[:len(f.secret)/2]
		if i := strings.IndexByte(f.secret, '\n'); i >= 0 {
			middle = f.secret[i+1 : i+64]
		}
		for _, r := range []*redact.Redactor{plain, entropic} {
			if got := r.Redact(raw); strings.Contains(got, middle) || !json.Valid([]byte(got)) {
				t.Fatalf("%s: got %s", raw, got)
			}
		}
	})
}

func TestJSONStaysJSON(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		raw := nested(t, texts().Draw(t, "text"), texts())
		for _, r := range []*redact.Redactor{plain, entropic} {
			if got := r.Redact(raw); !json.Valid([]byte(got)) {
				t.Fatalf("%s: got %s", raw, got)
			}
		}
	})
}

// mostWork bounds how often each byte of a text is read.
const mostWork = 400

func TestWorkGrowsWithTheText(t *testing.T) {
	scale.NotRaced(t)
	t.Parallel()
	units := append(redact.Keywords(), "sha256~"+random("s", alnum, 43), "-----BEGIN PRIVATE KEY-----",
		"-----BEGIN PRIVATE KEY-----\nAAAA\n", "Authorization: Bearer ", "://a:", "://a:b@", "eyJ.eyJ.",
		"eyJaaaaaaaaaaaaaaa.eyJaaaaaaaaaaaaaaa.", "\\", "curl -H ", "[REDACTED:", "fm2_"+random("f", alnum, 100), "hvs.",
		"ghp"+"_"+random("g", alnum, 36), "api_key=")
	size := scale.Of(2_000, 20_000)
	for _, r := range []*redact.Redactor{plain, entropic} {
		for _, unit := range units {
			small, large := strings.Repeat(unit, 1+size/len(unit)), strings.Repeat(unit, 1+10*size/len(unit))
			_, few := r.Work(small)
			_, many := r.Work(large)
			if many > 15*few || many > mostWork*len(large) {
				t.Errorf("%.40q: %d bytes of work for %d bytes, %d for %d", unit, few, len(small), many, len(large))
			}
		}
	}
}

func FuzzRedact(f *testing.F) {
	for _, x := range fakes() {
		f.Add(x.secret)
	}
	f.Add(`{"a": "\nsk-ant-` + `", "b": [1, "://a:b@c"]}`)
	f.Add("sha256~[REDACTED:jwt:1:00000000]")
	f.Fuzz(func(t *testing.T, text string) {
		for _, r := range []*redact.Redactor{plain, entropic} {
			once, work := r.Work(text)
			if work > mostWork*(len(text)+4096) {
				t.Fatalf("%d bytes of work for %d", work, len(text))
			}
			if twice := r.Redact(once); twice != once {
				t.Fatalf("%q: got %q, again %q", text, once, twice)
			}
			if json.Valid([]byte(text)) && !json.Valid([]byte(once)) {
				t.Fatalf("%s: %s is not JSON any more", text, once)
			}
		}
	})
}

// For random texts, HasMoreThanSamples agrees with a regular expression that removes samples.
func TestSamples(t *testing.T) {
	t.Parallel()
	samples := regexp.MustCompile(`(?i)change|me|my|your?|own|here|the|this|is|an?|for|with|some|any|new|old|` +
		`pass(word|phrase|wd)?|pwd|secret|token|api|key|access|auth|client|user(name)?|admin|root|test(ing)?|example|` +
		`sample|demo|dummy|fake|mock|place|holder|value|string|text|default|foo|bar|baz|qux|abc(def)?|xyz|x{2,}|long|` +
		`random|super|insert|enter|replace|[0-9]+|[^A-Za-z0-9]`)
	pieces := rapid.SliceOfN(rapid.SampledFrom(strings.Fields("change m e my You r own HERE the an pass word "+
		"phrase wd user name test ing abc def x xx xyz key q Z 7 42 - _ é ß . pwd default foo b ar")), 0, 8)
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(pieces.Draw(t, "pieces"), "")
		want := len(samples.ReplaceAllString(text, "")) > 3
		if got := redact.HasMoreThanSamples(text); got != want {
			t.Errorf("%q: got %v, want %v", text, got, want)
		}
	})
}
