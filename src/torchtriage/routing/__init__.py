"""A query becomes a plan, one question, or a referral."""
