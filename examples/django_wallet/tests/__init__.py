"""Operations on trial."""
