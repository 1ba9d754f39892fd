package recall

import "regexp"

// wish matches what people say of how they want things, in English: standing instructions and preferences.
var wish = regexp.MustCompile(`(?i)\b(?:always|never|please|from now on|prefer|rather|cannot stand|can't stand|hate|` +
	`love|only enjoy|favou?rite|allergic|no more|could live on|at most)\b`)

// choice matches what a question has that asks for a choice, and not for what happened.
var choice = regexp.MustCompile(`(?i)\b(?:should|shall|may|can|could|would|likes?|prefers?|enjoys?|suits?|rules?|` +
	`left out)\b`)

// asks matches how questions begin. What begins otherwise is a task.
var asks = regexp.MustCompile(`(?i)^\s*(?:who|whose|whom|what|when|where|which|why|how|in|on|at|did|do|does|is|are|` +
	`was|were|has|have|had|the)\b`)

// addWishes adds a bonus to candidates in which a person whom the query names says how they want things, if the query
// is a task or asks for a choice. Such a query seldom shares a word with the wish that it must follow.
func addWishes(all []candidate, query string) {
	if asks.MatchString(query) && !choice.MatchString(query) {
		return
	}
	named := namedIn(query)
	for i := range all {
		c := &all[i]
		if c.Opening != nil && !c.Asks && named(c.speaker()) && wish.MatchString(*c.Opening) {
			c.Gains.wish = wishBonus
			c.Score += wishBonus
		}
	}
}
