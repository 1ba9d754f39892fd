package agenttest

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// Fact is something that is said once in an agent's life and must not be lost.
type Fact struct {
	Turn int
	In   string // where it is said
	Asks string // words to search for it
	Code string // a text that occurs nowhere else
	Text string // the sentence
}

// Where facts are said.
const (
	inQuestion = "a question"
	inAnswer   = "an answer"
	inCall     = "the arguments of a call"
	inResult   = "a result"
	inLarge    = "the middle of a large result"
)

var carriers = []string{inQuestion, inAnswer, inResult, inLarge, inCall}

// Every fact is about one thing in one place, and no two are about the same.
var (
	things = []string{"spare key", "boiler manual", "wine cellar", "insurance policy", "piano tuner", "greenhouse lamp",
		"mail box", "fire escape",
		"guest wardrobe", "bicycle shed"}
	towns = []string{"Lisbon", "Tromsø", "Valparaíso", "Kyoto", "Nairobi", "Reykjavík", "Tbilisi", "Adelaide", "Québec",
		"Marrakesh"}
)

// factsAtMost is the number of different facts.
var factsAtMost = len(things) * len(towns)

func newFact(n, turn int) Fact {
	asks := things[n%len(things)] + " of the house in " + towns[n/len(things)%len(towns)]
	code := fmt.Sprintf("KX-%05d-%02d", (n*48_271+10_007)%100_000, n%100)
	return Fact{Turn: turn, In: carriers[(n+n/len(things))%len(carriers)], Asks: asks, Code: code,
		Text: fmt.Sprintf("The %s has the number %s.", asks, code)}
}

// story makes up messages and tool calls, the same ones for the same seed.
type story struct {
	*rand.Rand
	window int // the largest results are a share of these tokens
	calls  int
}

func newStory(seed uint64, window int) *story {
	//nolint:gosec // the same life for the same seed
	return &story{Rand: rand.New(rand.NewPCG(seed, 6)), window: window}
}

// act is a turn: a question, rounds of calls with their results, and an answer.
type act struct {
	question, answer string
	rounds           []round
}

// round is a set of parallel calls.
type round struct {
	calls  []chatCall
	text   string   // what the model says with its calls
	result []string // for each call
	single bool     // each result is captured separately
}

// words are the words of everything except facts.
var words = strings.Fields(`
	the build of this service reads its settings from a file and writes a log for every request that takes longer
	than we expect so the team looked at queries indexes caches and queues first then at how the scheduler hands
	out work to its workers while tests ran again after each change some failed because of a clock others because
	two of them shared one directory we moved these apart and added checks next comes the migration which must run
	before anything else starts or old rows would be read with new code`)

// say returns a text of about this many tokens, in sentences; some have their own lines.
func (s *story) say(tokens int) string {
	var b strings.Builder
	for n := 0; b.Len() < 4*tokens; n++ {
		length := 6 + s.IntN(12)
		for i := range length {
			word := words[s.IntN(len(words))]
			if i == 0 {
				word = strings.ToUpper(word[:1]) + word[1:]
			} else {
				b.WriteString(" ")
			}
			b.WriteString(word)
		}
		b.WriteString([]string{". ", ". ", ".\n"}[s.IntN(3)])
	}
	return strings.TrimSpace(b.String())
}

// around returns a text of about this many tokens with the fact in the middle.
func (s *story) around(fact string, tokens int) string {
	return s.say(tokens/2) + "\n" + fact + "\n" + s.say(tokens/2)
}

// large returns the size of a large result, from a twentieth to nearly a fifth of the window.
func (s *story) large() int { return s.window/20 + s.IntN(s.window/7) }

// next returns the next turn, with these facts in it.
func (s *story) next(facts []Fact) act {
	a := act{question: s.say(15 + s.IntN(80)), answer: s.say(30 + s.IntN(220))}
	if s.IntN(100) < 55 {
		for range 1 + s.IntN(4) {
			a.rounds = append(a.rounds, s.round())
		}
	}
	for _, f := range facts {
		s.tell(&a, f)
	}
	return a
}

func (s *story) round() round {
	r := round{single: s.IntN(2) == 0}
	if s.IntN(4) == 0 {
		r.text = s.say(20)
	}
	for range 1 + max(s.IntN(6)-3, 0) {
		r.calls = append(r.calls, s.call(s.say(3+s.IntN(15))))
		size := 10 + s.IntN(300)
		if s.IntN(12) == 0 {
			size = s.large()
		}
		r.result = append(r.result, s.say(size))
	}
	return r
}

func (s *story) call(text string) chatCall {
	s.calls++
	c := chatCall{ID: fmt.Sprintf("call_%d", s.calls), Type: "function"}
	c.Function.Name = []string{"read_file", "run_command", "search_code"}[s.IntN(3)]
	c.Function.Arguments = encoded(map[string]string{"text": text})
	return c
}

// tell adds a fact to a turn, at its place.
func (s *story) tell(a *act, f Fact) {
	r := &round{calls: []chatCall{s.call("look")}, result: []string{s.say(60)}}
	switch f.In {
	case inQuestion:
		a.question = s.around(f.Text, 40)
		return
	case inAnswer:
		a.answer = s.around(f.Text, 80)
		return
	case inCall:
		r.calls = []chatCall{s.call(f.Text)}
	case inResult:
		r.result = []string{s.around(f.Text, 100)}
	case inLarge:
		r.result = []string{s.around(f.Text, s.large())}
	}
	a.rounds = append(a.rounds, *r)
}
