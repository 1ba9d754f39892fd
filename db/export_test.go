package db

// ConnectionLingers, ConnectionPatience and ConnectionYields are those of the shares of connections.
const (
	ConnectionLingers  = connectionLingers
	ConnectionPatience = connectionPatience
	ConnectionYields   = connectionYields
)

// NewContendedShares returns shares as those of connections.
func NewContendedShares(total, reserve, contended int64) *Shares {
	s := NewShares(total, reserve)
	s.contended, s.lingers, s.patience = contended, connectionLingers, connectionPatience
	s.yields = connectionYields
	return s
}
