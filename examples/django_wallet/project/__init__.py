"""A Django project as small as can be: one app, one database, one cache."""
