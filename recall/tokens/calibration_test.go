package tokens_test

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/recall/tokens"
)

const unknown = "acme/large"

// prompt has what Loci and what a tokenizer counts for some texts.
type prompt struct {
	of    tokens.Composition
	count int
}

func (p *prompt) add(tokenizer string, texts ...counted) {
	var counter *tokens.Counter
	for _, c := range texts {
		p.of.Add(counter.Compose(unknown, c.Text))
		p.count += c.Tokens[tokenizer]
	}
}

// predicted returns what a calibration predicts for a prompt, as a share of what it has.
func (p prompt) predicted(c tokens.Calibration) float64 {
	return float64(c.Factor(p.of).Of(p.of.Total())) / float64(p.count)
}

// learnt returns the calibration after a provider reported each of these prompts.
func learnt(t *testing.T, c tokens.Calibration, prompts ...prompt) tokens.Calibration {
	t.Helper()
	for i, p := range prompts {
		var believed bool
		if c, believed = c.After(p.count, p.of, unknown); !believed {
			t.Errorf("report %d, of %d tokens for %v, is not believed", i, p.count, p.of)
		}
	}
	return c
}

// After three prompts of a conversation, the next one is predicted to a tenth, whatever vocabulary counts it and
// whatever it is about. A prompt about something else, of which no report was, is counted at most a tenth too low: so
// much of a window is left free.
func TestThreeReportsCalibrate(t *testing.T) {
	t.Parallel()
	texts := map[string]counted{}
	for _, c := range countedTexts(t) {
		texts[c.Name] = c
	}
	about := func(names ...string) (all []counted) {
		for _, name := range names {
			if len(name) < len("zht")+1 && texts[name].Text == "" { // a language
				name = "declaration of human rights, " + name
			}
			if texts[name].Text == "" {
				t.Fatalf("there is no text %q", name)
			}
			all = append(all, texts[name])
		}
		return all
	}
	system := about("prose, the README", "Go")
	topics := map[string][]counted{
		"coding":  about("transcript of a coding agent", "Go", "shell", "JavaScript", "logs"),
		"service": about("transcript of an airline agent", "prose, a guide", "minjson", "dates"),
		"base64":  about("base64", "jwt", "base64", "base64"),
		"hex":     about("hex", "sha", "uuids", "hexdump"),
		"numbers": about("decimals", "ints", "floats", "csv"),
		"Thai":    about("th", "th", "Go", "th"),
		"Hindi":   about("hi", "hi", "minjson", "hi"),
		"Chinese": about("zh", "zht", "shell", "zh"),
		"Russian": about("uk", "bg", "Go", "uk"),
		"Arabic":  about("ar", "fa", "Go", "ar"),
		"Hebrew":  about("he", "he", "Go", "he"),
		"Korean":  about("ko", "ko", "SQL", "ko"),
		"French":  about("fr", "es", "Go", "fr"),
		"emoji":   about("emoji-prose", "emoji", "emoji-prose", "emoji"),
	}
	for _, tokenizer := range []string{"llama2", "llama3", "mistral", "nemo", "qwen"} {
		for topic, said := range topics {
			var turns []prompt
			for i := range said {
				var p prompt
				p.add(tokenizer, system...)
				for range 3 {
					p.add(tokenizer, said[:i+1]...)
				}
				turns = append(turns, p)
			}
			c := learnt(t, tokens.NewCalibration(unknown), turns[:3]...)
			if ratio := turns[3].predicted(c); ratio < 0.9 || ratio > 1.1 {
				t.Errorf("%s, %s: the fourth prompt is predicted as %.2f of what it is: %v", tokenizer, topic, ratio, c.Factors)
			}
			for other, texts := range topics {
				var p prompt
				p.add(tokenizer, system...)
				p.add(tokenizer, texts...)
				if ratio := p.predicted(c); ratio < 0.9 {
					t.Errorf("%s: after %s, %s is predicted as %.2f of what it is", tokenizer, topic, other, ratio)
				}
			}
		}
	}
}

// A kind of text that was in three prompts, left them, and comes back is predicted to a tenth, however many prompts
// were without it.
func TestAClassThatComesBackIsPredicted(t *testing.T) {
	t.Parallel()
	texts := map[string]counted{}
	for _, c := range countedTexts(t) {
		texts[strings.TrimPrefix(c.Name, "declaration of human rights, ")] = c
	}
	system := []counted{texts["prose, the README"], texts["Go"]}
	var work []counted
	for _, name := range []string{"transcript of a coding agent", "Go", "shell", "JavaScript", "logs", "SQL",
		"transcript of an airline agent", "prose, a guide", "minjson"} {
		work = append(work, texts[name])
	}
	for _, tokenizer := range []string{"llama2", "llama3", "mistral", "nemo", "qwen"} {
		for _, name := range []string{"base64", "hex", "decimals", "th", "hi", "zh", "uk", "ar", "ko", "fr", "emoji"} {
			said := slices.Repeat([]counted{texts[name]}, 3)
			for _, away := range []int{0, 5, 15, 40} {
				c := tokens.NewCalibration(unknown)
				report := func(said []counted, others ...counted) {
					var p prompt
					p.add(tokenizer, slices.Concat(system, said, others)...)
					c = learnt(t, c, p)
				}
				for i := range 3 {
					report(said[:1+i/2], work[i])
				}
				for i := range away {
					report(nil, work[i%len(work)], work[(i+3)%len(work)])
				}
				for n := range said {
					var p prompt
					p.add(tokenizer, slices.Concat(system, said[:n+1], work[n:n+1])...)
					if ratio := p.predicted(c); ratio < 0.92 || ratio > 1.1 {
						t.Errorf("%s: after %d prompts without %s one with it is predicted as %.2f of what it is: %v", tokenizer,
							away, name, ratio, c.Factors)
					}
				}
			}
		}
	}
}

// Before any report, models that count a class far off the estimate begin with a factor of their own, which is not too
// low.
func TestModelsBeginWithTheirFactors(t *testing.T) {
	t.Parallel()
	var counter *tokens.Counter
	for _, c := range countedTexts(t) {
		of := counter.Compose("meta/Llama-3.3-70B", c.Text)
		got := tokens.NewCalibration("meta/Llama-3.3-70B").Factor(of).Of(of.Total())
		if got < c.Tokens["llama3"] {
			t.Errorf("%s: %d tokens before a report, Llama 3 counts %d", c.Name, got, c.Tokens["llama3"])
		}
	}
	for model, want := range map[string]tokens.Factor{"anthropic/claude-opus-4-1": 1.65, unknown: tokens.Uncalibrated} {
		if got := tokens.NewCalibration(model).Factor(tokens.Composition{tokens.Syllabic: 100}); got != want {
			t.Errorf("%s: Thai has the factor %v, want %v", model, got, want)
		}
	}
}

func TestReportsThatAreOfOtherPrompts(t *testing.T) {
	t.Parallel()
	of := tokens.Composition{tokens.Words: 900, tokens.Frames: 100}
	for name, c := range map[string]struct {
		model    string
		reported int
		believed bool
	}{
		"as counted":                           {unknown, 1000, true},
		"far fewer":                            {unknown, 460, true},
		"a cut prompt":                         {unknown, 440, false},
		"far more":                             {unknown, 2500, true},
		"another prompt":                       {unknown, 2501, false},
		"nothing":                              {unknown, 0, false},
		"a cut prompt of a model that we know": {"openai/gpt-4o", 440, false},
		"fewer than the model's vocabulary gives": {"openai/gpt-4o", 700, true},
	} {
		before := tokens.NewCalibration(c.model)
		after, believed := before.After(c.reported, of, c.model)
		if believed != c.believed || !believed && after != before {
			t.Errorf("%s: believed %t, want %t; %v", name, believed, c.believed, after.Factors)
		}
		f, want := float64(after.Factor(of)), min(float64(c.reported)/1000, 2)
		if believed && c.model == unknown && math.Abs(f-want) > 0.1 {
			t.Errorf("%s: the factor is %.2f after a first report of %d", name, f, c.reported)
		}
		if f := after.Factors[tokens.Words]; c.model != unknown && f < 0.9 {
			t.Errorf("%s: the factor of words is %.2f, though the vocabulary is known", name, f)
		}
	}
	if _, believed := tokens.NewCalibration(unknown).After(10, tokens.Composition{}, unknown); believed {
		t.Error("a report of a prompt without tokens is believed")
	}
}

// A factor follows a provider that changes how it counts.
func TestACalibrationFollows(t *testing.T) {
	t.Parallel()
	of := tokens.Composition{tokens.Words: 10_000}
	same := func(count int) []prompt { return slices.Repeat([]prompt{{of, count}}, 6) }
	c := learnt(t, tokens.NewCalibration(unknown), same(7_000)...)
	if f := c.Factor(of); f < 0.69 || f > 0.72 {
		t.Errorf("after six reports of 0.7 the factor is %.3f", f)
	}
	one := learnt(t, c, prompt{of, 9_000})
	if f := one.Factor(of); f < 0.75 || f > 0.9 {
		t.Errorf("one higher report makes the factor %.3f", f)
	}
	c = learnt(t, c, same(9_000)...)
	if f := c.Factor(of); f < 0.88 || f > 0.98 {
		t.Errorf("after six reports of 0.9 the factor is %.3f", f)
	}
}

func TestCompositionsAreNamed(t *testing.T) {
	t.Parallel()
	var counter *tokens.Counter
	for text, want := range map[string]tokens.Class{
		"The quick brown fox jumps over the lazy dog, and then it rests.": tokens.Words,
		"Überraschung! Größe, Äpfel, schön, würde, möchte":                tokens.LongWords,
		"aGVsbG8gd29ybGQgdGhpcyBpcyBiYXNlNjQ3Zm9vYmFyQmF6UXV4":            tokens.Fragments,
		"3f9a0c77be12d4e5f6a7b8c9d0e1f2a3":                                tokens.Hashes,
		"0x3F9A0C77BE12 9b2c41d8e7 a1b2c3d4-e5f6-4a7b":                    tokens.Hashes,
		"1a2b3c4dXY 1a2b3c4dZ 3f9A0c77Be12d4e5":                           tokens.Fragments,
		"12345 67890 31415 92653":                                         tokens.Digits,
		"Съешь же ещё этих мягких французских булок":                      tokens.Alphabets,
		"صباح الخير يا عالم":                                              tokens.Abjads,
		"כל בני האדם נולדו בני חורין":                                     tokens.Hebrew,
		"สวัสดีชาวโลกทั้งหลาย":                                            tokens.Syllabic,
		"吾輩は猫である。名前はまだ無い。":                                                tokens.Han,
		"안녕하세요 세계 여러분":                                                    tokens.Hangul,
		"🎉🎊🚀🔥😀":                                                           tokens.Signs,
	} {
		of := counter.Compose(unknown, text)
		if got := of[want]; got*10 < of.Total()*6 || of.Total() != tokens.Estimate(text) {
			t.Errorf("%q: %v, of %d", text, of, tokens.Estimate(text))
		}
		if known := counter.Compose("openai/gpt-4o", text); known[tokens.Words] != counter.Count("openai/gpt-4o", text) {
			t.Errorf("%q: a known vocabulary has %v", text, known)
		}
	}
}

// A calibration that a version with fewer classes stored gives a class that was part of another one the factor of that.
func TestAnOlderCalibrationIsRead(t *testing.T) {
	t.Parallel()
	was := tokens.NewCalibration(unknown)
	was.Factors[tokens.Fragments], was.Factors[tokens.Abjads], was.Reports = 0.6, 0.8, 4
	data, err := json.Marshal(was)
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(data, &fields); err != nil {
		t.Fatal(err)
	}
	const classes = 11
	fields["Factors"] = fields["Factors"].([]any)[:classes]
	rows := fields["Covariance"].([]any)[:classes]
	for i := range rows {
		rows[i] = rows[i].([]any)[:classes]
	}
	fields["Covariance"] = rows
	if data, err = json.Marshal(fields); err != nil {
		t.Fatal(err)
	}
	var got tokens.Calibration
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	want := was
	want.Factors[tokens.Hashes], want.Factors[tokens.Hebrew] = 0.6, 0.8
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	var same tokens.Calibration
	if data, err = json.Marshal(want); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &same); err != nil || cmp.Diff(want, same) != "" {
		t.Errorf("what this version stored is read as %s, %v", cmp.Diff(want, same), err)
	}
}
