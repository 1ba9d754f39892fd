package db

// ConnectionLingers and ConnectionPatience are those of the shares of connections.
const (
	ConnectionLingers  = connectionLingers
	ConnectionPatience = connectionPatience
)

// NewContendedShares returns shares as those of connections.
func NewContendedShares(total, reserve, contended int64) *Shares {
	s := NewShares(total, reserve)
	s.contended, s.lingers, s.patience = contended, connectionLingers, connectionPatience
	return s
}
