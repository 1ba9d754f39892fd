package recall_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// turn is one utterance of a dialogue.
type turn struct {
	id, speaker, text string
	first             bool // the speaker is the one who has the agent
	at                time.Time
}

// question is a question, and the ids of the turns that answer it.
type question struct {
	category, text string
	evidence       []string
}

// dialogue is what two people said over months, with questions about it.
type dialogue struct {
	turns     []turn
	questions []question
}

// Categories of questions. The answer stands with the question's words, next to them, in a month that the question
// names, in the latest of several versions, in two places, or in other words.
var categories = []string{"direct", "adjacent", "temporal", "update", "multi-hop", "paraphrase"}

var (
	people = []string{
		"Alice",
		"Boris",
		"Carmen",
		"Dmitri",
		"Elena",
		"Farid",
		"Greta",
		"Hiro",
		"Imani",
		"Jonas",
		"Katya",
		"Luis",
		"Mara",
		"Nils",
		"Oona",
		"Pavel",
		"Quinn",
		"Rosa",
		"Sven",
		"Tara",
	}
	names = []string{
		"Agnes",
		"Bruno",
		"Celia",
		"Dora",
		"Emil",
		"Fiona",
		"Gustav",
		"Helga",
		"Igor",
		"Julia",
		"Kaspar",
		"Lotte",
		"Mirko",
		"Nadia",
		"Otto",
		"Petra",
	}
	cities = []string{
		"Lisbon",
		"Krakow",
		"Oslo",
		"Turin",
		"Ghent",
		"Porto",
		"Riga",
		"Bergen",
		"Graz",
		"Malmo",
		"Leeds",
		"Cork",
		"Basel",
		"Nantes",
		"Split",
		"Varna",
	}
	colours = []string{"red", "green", "yellow", "grey", "purple", "turquoise", "orange", "brown"}
	things  = []string{
		"bicycle",
		"kayak",
		"sewing machine",
		"telescope",
		"accordion",
		"wheelbarrow",
		"typewriter",
		"hammock",
		"lawnmower",
		"snowboard",
		"easel",
		"aquarium",
	}
	places = []string{
		"the harbour market",
		"an auction",
		"a closing hotel",
		"the neighbour's cellar",
		"a museum shop",
		"the scrapyard",
		"a charity stall",
		"the old cinema",
	}
	jobs = []string{"nurse", "carpenter", "pilot", "librarian", "surveyor", "baker", "geologist", "translator"}
)

// smallTalk stands between the important turns and shares words with them.
var smallTalk = []string{
	"How was your week? Mine went by in a blur.", "Honestly, I have not slept enough since Monday.",
	"That sounds lovely, tell me more.",
	"The weather has been strange, rain and sun within an hour.", "I keep meaning to call you, and then the day is over.",
	"Work was busy again, three meetings in a row.", "Ha, I would have done the same.",
	"Did you watch the match yesterday?",
	"My phone battery died twice today.", "I should really buy fewer things.",
	"Let us have coffee next week, the usual place.",
	"The train was late, so I walked home.", "I read half a book on the bus.", "Everyone at the office has a cold.",
	"I cooked something simple and went to bed.", "That is a good question, I will think about it.", "Sure, why not.",
	"I found an old photograph of us at the lake.", "The neighbours are painting their fence again.",
	"Anyway, I have to run. Talk soon!",
}

// paraphrases are statements, each with a question that shares no word with it.
var paraphrases = [][2]string{
	{"I cannot stand cilantro, to me it tastes like soap.", "Which herb does %s dislike?"},
	{"The doctor put my arm in plaster after I slipped on the ice.", "What injury did %s have in winter?"},
	{"We are expecting a baby girl, due at the end of spring!", "Who is going to be a new parent, %s?"},
	{"My landlord wants six hundred more each month, it is outrageous.", "How did the rent of %s change?"},
	{"I handed in my notice, Friday is my last day at the bank.", "When did %s quit the job?"},
	{"The vet says the old cat has to lose two kilos.", "What is the pet of %s supposed to do?"},
	{"I learned to say thank you and good morning in Finnish.", "Which foreign language is %s studying?"},
	{"They rejected my manuscript for the third time.", "What happened to the novel that %s wrote?"},
	{"I am up at five to swim before breakfast.", "What sport does %s do early?"},
	{"My glasses broke, so I am blind as a bat today.", "What is wrong with the eyesight of %s?"},
	{"We tore out the kitchen, dust is everywhere.", "What renovation is going on at the home of %s?"},
	{"The orchestra made me first violin!", "Which promotion did %s get in music?"},
}

// exchanges are a question about a thing, its answer, and a later question about both.
var exchanges = [][3]string{
	{"So where did you put the %s in the end?", "At %s's, covered with a sheet.", "Where does %s keep the %s?"},
	{"Who sold you the %s, by the way?", "A fellow called %s, very polite.", "From whom did %s get the %s?"},
	{"What made you start with the %s at all?", "It was %s, the winter we were snowed in.", "Why did %s take up the %s?"},
	{"How much did you pay for the %s?", "Ninety, and I had to fetch it in %s.", "What did %s pay for the %s?"},
	{
		"Is the %s fixed again?",
		"Not before Thursday, %s is still waiting for a part.",
		"When will %s have the %s repaired?",
	},
	{
		"Did anything happen to the %s in the flood?",
		"Only the handle came off, %s glued it.",
		"What damage did %s have on the %s?",
	},
	{"What will you do with the old %s?", "Give it to %s, I suppose.", "To whom will %s give the old %s?"},
	{"Which name did you give the %s?", "We call it %s, do not ask.", "What name has %s for the %s?"},
	{"Has anybody borrowed the %s yet?", "Yes, %s, and never brought it back.", "Who borrowed from %s the %s?"},
	{"When did you last use the %s?", "The summer in %s, ages ago.", "When did %s last use the %s?"},
	{"Where will you show the %s?", "At the fair near %s, if they let me.", "Where will %s exhibit the %s?"},
	{"Who complained about the %s this time?", "The caretaker, %s took his side.", "Who complained to %s about the %s?"},
}

// script writes a dialogue.
type script struct {
	*rand.Rand
	dialogue
	speakers [2]string
	at       time.Time
	session  int
	n        int
}

func (s *script) say(who int, text string) string {
	s.n++
	s.at = s.at.Add(time.Duration(20+s.IntN(60)) * time.Second)
	id := fmt.Sprintf("D%d:%d", s.session, s.n)
	s.turns = append(s.turns, turn{id: id, speaker: s.speakers[who], text: text, first: who == 0, at: s.at})
	return id
}

func (s *script) ask(category, text string, evidence ...string) {
	s.questions = append(s.questions, question{category: category, text: text, evidence: evidence})
}

func (s *script) chat(turns int) {
	for range turns {
		s.say(s.IntN(2), smallTalk[s.IntN(len(smallTalk))])
	}
}

func pick[T any](s *script, from []T) T { return from[s.IntN(len(from))] }

// scenes each write one fact into the dialogue, and a question about it.
var scenes = []func(s *script){
	func(s *script) { // direct
		who, colour, thing, place := s.IntN(2), pick(s, colours), pick(s, things), pick(s, places)
		id := s.say(who, fmt.Sprintf("Guess what, I bought a %s %s from %s.", colour, thing, place))
		s.say(1-who, "Really? You never stop.")
		s.ask("direct", fmt.Sprintf("What %s thing did %s buy from %s?", colour, s.speakers[who], place), id)
	},
	func(s *script) { // adjacent, at times with a turn between
		who, talk, thing := s.IntN(2), pick(s, exchanges), pick(s, things)
		s.say(who, fmt.Sprintf(talk[0], thing))
		if s.IntN(3) == 0 {
			s.say(1-who, pick(s, []string{"Oh, that is a long story.", "Let me think.", "You will laugh."}))
		}
		id := s.say(1-who, fmt.Sprintf(talk[1], pick(s, slices.Concat(names, cities))))
		s.ask("adjacent", fmt.Sprintf(talk[2], s.speakers[1-who], thing), id)
	},
	func(s *script) { // paraphrase
		who, p := s.IntN(2), pick(s, paraphrases)
		id := s.say(who, p[0])
		s.say(1-who, "Oh dear. And how do you feel about it?")
		s.ask("paraphrase", fmt.Sprintf(p[1], s.speakers[who]), id)
	},
	func(s *script) { // multi-hop
		who, name, city, job := s.IntN(2), pick(s, names), pick(s, cities), pick(s, jobs)
		one := s.say(who, fmt.Sprintf("My cousin %s moved to %s last spring.", name, city))
		s.chat(2)
		two := s.say(who, fmt.Sprintf("By the way, %s found work as a %s.", name, job))
		s.ask(
			"multi-hop",
			fmt.Sprintf("In which city does the cousin of %s work as a %s, and who is it?", s.speakers[who], job),
			one,
			two,
		)
	},
}

// newDialogue writes a dialogue with one session in each fortnight of a year.
func newDialogue(seed uint64) dialogue {
	s := &script{Rand: rand.New(rand.NewPCG(seed, 7))}
	first := s.IntN(len(people))
	s.speakers = [2]string{people[first], people[(first+1+s.IntN(len(people)-1))%len(people)]}
	runner, desk := s.IntN(2), s.IntN(2)
	var runs []question
	for s.session = 1; s.session <= 24; s.session++ {
		s.n, s.at = 0, time.Date(2023, 1, 3, 18, 0, 0, 0, time.UTC).AddDate(0, 0, 15*(s.session-1))
		s.chat(2 + s.IntN(4))
		if s.session%2 == 1 {
			id := s.say(runner, fmt.Sprintf("I ran a race at the weekend, %d kilometres, and my knees hurt.", 5+s.IntN(30)))
			runs = append(
				runs,
				question{
					category: "temporal",
					text:     fmt.Sprintf("How far did %s run in the race in %s 2023?", s.speakers[runner], s.at.Month()),
					evidence: []string{id},
				},
			)
		}
		if s.session%8 == 0 {
			id := s.say(desk, fmt.Sprintf("They moved us around again, my desk number is %d now.", 10+s.IntN(80)))
			s.questions = slices.DeleteFunc(s.questions, func(q question) bool { return q.category == "update" })
			s.ask("update", fmt.Sprintf("What is the desk number of %s now?", s.speakers[desk]), id)
		}
		for range 2 {
			scenes[s.IntN(len(scenes))](s)
			s.chat(1 + s.IntN(4))
		}
	}
	s.questions = append(s.questions, runs...)
	return s.dialogue
}
