package recall

import (
	"github.com/loci-memory/loci/embed/rank"
)

// These are gains of a message from its context, as shares of the best message's own score. An answer seldom contains
// the words of its question, but it often stands next to messages that do. On dialogues, neighbors add 8 points of
// recall at 10; sessions and participants add 4 more. On unrelated texts, such as the functions of a program, they cost
// 2.
const (
	openingShare     = 0.5  // times the share by meaning of a long message: its vector is of its opening alone
	sessionShare     = 0.5  // times the score of the message's session, taken as one text
	answerShare      = 0.3  // times the score of a question just before the message
	participantBonus = 0.15 // if the query names the speaker
	wishBonus        = 0.4  // if the message says how somebody wants things, and the query is a task or asks for a choice
	onlyTimeBonus    = 3    // if the query names the message's time, and nothing else
	dayBonus         = 1    // if the query names the message's day or week
	otherYearBonus   = 0.3  // if the query names that day, but in another year
	otherYearShare   = 0.9  // times onlyTimeBonus, if the message is of another year
	monthBonus       = 0.15 // if the query names the month
	yearBonus        = 0.05 // if the query names only the year
)

// neighborShares are the shares of the scores of messages at distance one and two, before and after.
var neighborShares = []float64{0.3, 0.2}

// gains are the scores that a message gains from its context.
type gains struct{ neighbors, session, participant, wish, date, near, passage float64 }

// added returns the gains with their names, without those of the neighbors.
func (g gains) added() []rank.Added {
	return []rank.Added{{Of: "session", Value: g.session}, {Of: "participant", Value: g.participant},
		{Of: "wish", Value: g.wish}, {Of: "date", Value: g.date}, {Of: "near", Value: g.near}, {Of: "passage",
			Value: g.passage}}
}
