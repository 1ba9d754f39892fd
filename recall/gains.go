package recall

import (
	"github.com/loci-memory/loci/embed/rank"
)

// What a message gains from its context, in shares of the best message's own score. An answer seldom has the words of
// its question, but is often next to messages that do: on dialogues, neighbors add 8 points of recall at 10, sessions
// and participants 4 more. On unrelated texts, such as the functions of a program, they cost 2.
const (
	sessionShare     = 0.5  // of the score of the message's session, taken as one text
	answerShare      = 0.15 // of the score of a question just before the message
	participantBonus = 0.15 // where the query names the speaker
	onlyTimeBonus    = 3    // where the query names its time, and nothing else
	dayBonus         = 1    // the day or the week
	otherYearBonus   = 0.3  // that day of another year
	otherYearShare   = 0.9  // of onlyTimeBonus, for that time of another year
	monthBonus       = 0.15 // the month
	yearBonus        = 0.05 // the year alone
)

// neighborShares are the shares of the scores of the messages one and two places before and after.
var neighborShares = []float64{0.3, 0.2}

// gains are what a message gains from its context.
type gains struct{ neighbors, session, participant, date, near float64 }

// boosts returns the gains by their names.
func (g gains) boosts() []rank.Boost {
	return []rank.Boost{{Name: "neighbors", Value: g.neighbors}, {Name: "session", Value: g.session},
		{Name: "participant", Value: g.participant}, {Name: "date", Value: g.date}, {Name: "near", Value: g.near}}
}
