package policy

// Cut is where a hard truncation cuts messages of some tokens that have some room.
func (s *HardTruncate) Cut(tokens []int, room int) int { return s.cut(tokens, room) }

// CharTokens counts a view at four characters a token.
var CharTokens = charTokens
